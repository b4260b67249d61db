// Package guard keeps the protocol of a stdio server clean from inside the
// server: it takes the wire, the bytes between client and server, off the
// standard descriptors, so that no print, native library or subprocess can
// write into it or read from it.
//
//	wire, err := guard.Open()
//	if err != nil {
//		return err
//	}
//	defer wire.Release()
//	// read requests from wire, write replies to it
//
// [Open] takes the wire that a parent wireguardrun handed down when there is
// one, and else does what [Claim] does, so one call serves both.
//
// # When to use it, and when the wrapper
//
// A server that calls Open protects its session from that line on, also where
// nobody puts wireguardrun in front of it. What is printed earlier (imports,
// launchers such as npm run) or later (buffers that are flushed at exit) is out
// of its reach, and so is a server that dies half-way. wireguardrun in front
// covers the whole life of the process, and servers in every language. Both
// together cost nothing more: Open then takes the wire that was handed down.
//
// Claim is for programs that are started by something else than wireguardrun
// and want no other wire than their own descriptors 0 and 1.
//
// # The invariant
//
// At every moment each standard descriptor is either on the wire, or it points
// at the diversion and the claim is held, here or by the parent that handed the
// wire down; and while the claim is held, the Wire serves the wire until it is
// closed.
//
// # States
//
// Each direction has a claim of its own, which moves like this:
//
//	free ---> duplicated ---> diverted -----------> free
//	 |            |               |
//	 |            |               +---> stuck ----> free, or stuck again
//	 |            |               |
//	 |            +---> rolled forward -----------> free
//	 |            |
//	 +------------+---> in place -----------------> free
//	 |
//	 +---> diverted, by a parent that handed the wire down
//
// What they mean:
//
//   - duplicated: the wire has a private duplicate, which cannot land among
//     the standard descriptors and which children do not inherit. A standard
//     descriptor that is closed counts as the null device, and becomes it.
//   - diverted: the claim is complete. Descriptor 0 is the null device, or a
//     lifeline; descriptor 1 is a duplicate of standard error, or of what
//     DivertTo names. Where that can't be had, or is the wire itself (2>&1),
//     it is the null device.
//   - in place: duplicating or opening the diversion failed, or a later step
//     failed and was rolled back. The wire is served from the standard
//     descriptor, unprotected, and the claim is held.
//   - rolled forward: a step failed and so did rolling it back. The wire is
//     served from the private duplicate, as by a complete claim.
//   - stuck: Release could not put the wire back. The claim is kept, the wire
//     still served, and Release may be called again.
//
// What a system call did is observed and not believed: after a failure the
// standard descriptor is compared with wire and diversion, since a dup2 may
// fail with its work done, or with its target closed. Where the two can't be
// told apart, the wire is put back from the private duplicate; if that fails
// too, the claim rolls forward.
//
// The tests live every life of a claim in which up to three operations fail,
// each in each way it can: 29651 lives on a model of the system, with and
// without a refused comparison, and 600 of them with real descriptors. Of 13
// mutations of the package, each of which takes one promise away, 13 are caught.
//
// # Platforms
//
//	                        Unix                        Windows
//	standard stream         descriptor 0, 1             standard handle, os.Stdin, os.Stdout
//	private duplicate       F_DUPFD_CLOEXEC, from 3     DuplicateHandle, not inheritable
//	diverting               dup2                        SetStdHandle, contents of *os.File
//	os.Stdout captured      diverted                    diverted
//	native code             diverted                    diverted if it asks GetStdHandle
//	subprocesses            diverted                    diverted
//	identity                device, inode, kcmp(2)      CompareObjectHandles
//	blocked Read, Release   poll and a wake pipe        CancelIoEx
//	after Release           O_NONBLOCK, terminal modes  console modes
//
// kcmp is on Linux only, and sandboxes may refuse it; without it, two openings
// of one file can't be told apart.
//
// # Ownership of descriptors
//
//	standard descriptors  the process; on Unix a claim moves them and closes none
//	private duplicate     the claim; closed when it ends and no Read or Write is under way
//	diversion             closed as soon as the standard descriptor names it
//	lifeline              its write end is the claim's, open until it ends
//	DivertTo's file       the caller, who may close it once Claim has returned
//	wake pipe             the Wire; opened by the first Read or Write of a direction (Unix)
//	handed-down pair      the process; Release leaves it open, Close closes it
//	Wire.Descriptor       borrowed from the claim; not to be closed
//
// # Not guaranteed
//
//   - What was printed before the claim is on the wire; text that a buffer of
//     the program still holds at Release is written to the wire afterwards.
//     Flush before both, or start the server with wireguardrun, which protects
//     it from its first instruction to its last.
//   - A descriptor that somebody duplicated from 0 or 1 before the claim, or a
//     thread that is blocked in a read of 0 at that moment, still has the wire;
//     so has a process that native code forks without exec.
//   - On Windows a C runtime that is already initialised in the process keeps
//     handles of its own, and so does code that remembers a handle's value; one
//     that is initialised during the claim holds the diversion's, which Release
//     closes. A read that is blocked on a console may end later than Release.
//   - A process that reads the wire at the same time, having inherited it
//     earlier, takes bytes away; a Read may then wait where Release can't
//     interrupt it. So may a Write, when another process writes to the same
//     full pipe, or on a terminal whose other side has stopped reading; and a
//     Read of /dev/tty under that name on macOS, or of anything while no
//     descriptor is left for the wake pipe. Release does not wait for them.
//   - O_NONBLOCK and terminal modes are put back by Release, not when the
//     process is killed.
//
// # Errors
//
//	ErrClaimed      another Wire of the process has the stream; nothing was taken
//	ErrHandover     the wire that a parent handed down can't be used, or only by Open; nothing was taken
//	ErrNotClaimed   read or write of a direction that Only left out
//	StepError       names the operation, the stream and the system's error
//	os.ErrClosed    read or write after Close or Release
//	io.EOF          the client has ended its side, told by Read
//	syscall.EPIPE   the client reads no more, told by Write (Windows: ERROR_NO_DATA)
//
// The package never prints, logs or reads flags.
package guard
