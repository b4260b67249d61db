// Command life measures how a guarded session ends when its client dies, and
// counts that nothing ends early which has a right to go on:
//
//	go run ./bench/life
//
// Linux only.
package main
