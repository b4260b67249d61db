// Command idle is the least that a Go program costs.
package main

func main() {}
