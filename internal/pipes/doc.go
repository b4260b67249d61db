// Package pipes holds what the rest of the module needs to know about open
// descriptors: how to duplicate, compare, read and write them without
// disturbing the processes they are shared with.
//
// A [Handle] is a plain number and has exactly one owner, who closes it; every
// function here says whether it borrows a handle or hands one over. Reads and
// writes never set O_NONBLOCK: flags of an open file description are shared with
// every process that has inherited it. Only [SetBlocking] and [Modes.Reinstate]
// change such flags, and that is what they are for.
package pipes
