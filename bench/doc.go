// Command bench measures what wireguardrun costs, against doing without it, a
// plain copy in Go, filters as people write them and other wrappers, and prints
// tables with ratios:
//
//	go run ./bench                                     all of them
//	go run ./bench -tables trips,throughput -cpus one  some
//	go run ./bench -only stdio                         what has this in its name
//
// Everything that is compared is measured in one run, in turns, so that what
// else the machine does hits all alike. What is not installed is left out, by
// name. Linux only.
package main
