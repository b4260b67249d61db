// Package stress starts and ends guarded sessions in random ways, and then
// looks for what must not be: a process that is left, a frame that is lost, a
// flag that is changed. It also puts wireguardrun beside other
// wrappers, lets much traffic and noise through a session, and looks at memory
// while a client or a server misbehaves.
//
//	go test -v ./test/stress                                  a short run
//	WGR_STRESS=1000 go test -v -timeout=30m ./test/stress     the long one
//	WGR_STRESS_SEED=7 ...                                     another order
//	WGR_STRESS_KIND=keeper ...                                 kinds with this in their names
//	WGR_STRESS_SOAK_FRAMES=200000 go test -v -run TestSoak ./test/stress       an hour's traffic
//	WGR_STRESS_MB=1024 go test -v -run TestMemoryIsBounded ./test/stress       a server that prints that much
//	WGR_PEERS=1 go test -v -run TestPeers ./test/stress       the table of wrappers
//
// The tests need Linux: they read /proc.
package stress
