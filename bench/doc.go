// Command bench measures what wireguardrun costs, against doing without it and
// against other wrappers, and prints tables with ratios:
//
//	go run ./bench
//
// Everything that is compared is measured in one run, in turns, so that what
// else the machine does hits all alike. Wrappers that are not installed are
// left out, by name. Linux only.
package main
