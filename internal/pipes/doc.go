// Package pipes holds what the rest of the module needs to know about open
// descriptors: how to duplicate, compare, read and write them without
// disturbing the processes they are shared with.
//
// A [Handle] is a plain number and has exactly one owner, who closes it; every
// function here says whether it borrows a handle or hands one over. Nothing in
// this package changes a flag of an open file description, because those are
// shared with the process at the other end of the inheritance.
package pipes
