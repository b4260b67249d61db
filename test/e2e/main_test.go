// Package e2e drives the real wireguardrun binary from outside: real
// processes, real descriptors, nothing imported from this module.
//
// Two files make up the harness that all other files use: this one (the
// binary under test, roles, what the suite needs from the machine) and
// session_test.go (start a command, talk to it, wait for it).
//
// Rules: wait for something that the other side does, and sleep only to show
// that nothing happens; every wait is limited by the harness; every process that
// a test starts is waited for.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// wireguardrun is the path of the binary under test, built by TestMain.
var wireguardrun string

// Environment of the harness. Neither name may begin with WIREGUARDRUN_,
// which is the product's own prefix.
const (
	roleEnv    = "WGR_ROLE"    // which role the re-executed test binary plays
	sessionEnv = "WGR_SESSION" // marks every process of one session, see session.Processes
)

// roles are the children that the test binary can be re-executed as, in place
// of sh, cat and the like, which not every system has. Register one next to
// the test that uses it:
//
//	var echoServer = role("echo-server", func() int { ...; return 0 })
//
//	s := start(t, Options{Role: echoServer})
//
// A role runs before any flag is parsed, so os.Args[1:] are its own
// arguments, and its result is the exit status. The variable that chose it is
// gone by then: what a role starts is no role, unless it uses roleCommand.
var roles = map[string]func() int{}

// role registers fn and returns name. It is meant for package variables.
func role(name string, fn func() int) string {
	if roles[name] != nil {
		panic("e2e: role " + name + " is registered twice")
	}
	roles[name] = fn
	return name
}

// usage is what this run of the suite has touched; tests may run in parallel.
var usage struct {
	sync.Mutex
	roles   map[string]bool
	skipped bool // some test could not run here, so its roles may be unused
}

// roleCommand returns the argument vector that runs the test binary as the
// named role, and what must be added to its environment.
func roleCommand(name string, args ...string) (argv, env []string) {
	useRole(name)
	exe, err := os.Executable()
	if err != nil {
		panic(fmt.Sprintf("e2e: finding the test binary: %v", err))
	}
	return append([]string{exe}, args...), []string{roleEnv + "=" + name}
}

// useRole notes that the roles are used. Only a test whose role is started by
// another role, out of sight of this process, has to call it.
func useRole(names ...string) {
	usage.Lock()
	defer usage.Unlock()
	for _, name := range names {
		if roles[name] == nil {
			panic("e2e: there is no role " + name)
		}
		if usage.roles == nil {
			usage.roles = map[string]bool{}
		}
		usage.roles[name] = true
	}
}

func TestMain(m *testing.M) {
	if name := os.Getenv(roleEnv); name != "" {
		os.Unsetenv(roleEnv)
		fn := roles[name]
		if fn == nil {
			fmt.Fprintf(os.Stderr, "e2e: there is no role %q\n", name)
			os.Exit(125)
		}
		os.Exit(fn())
	}
	flag.Parse()
	os.Exit(runSuite(m))
}

func runSuite(m *testing.M) int {
	if flagSet("test.list") {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "wireguardrun-e2e-")
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	if wireguardrun, err = goBuild("./cmd/wireguardrun"); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		return 1
	}
	if !flagSet("test.parallel") {
		// Parallel tests here are those that wait for most of their time.
		_ = flag.Set("test.parallel", "12")
	}
	code := m.Run()
	if code == 0 && wholeSuite() {
		for name := range roles {
			if !usage.roles[name] {
				fmt.Fprintf(os.Stderr, "e2e: no test uses the role %q\n", name)
				code = 1
			}
		}
	}
	return code
}

// wholeSuite tells whether every test has run to its end.
func wholeSuite() bool {
	return !flagSet("test.run") && !flagSet("test.skip") && !testing.Short() && !usage.skipped
}

// flagSet tells whether the command line has the flag.
func flagSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// moduleRoot is the top of the tree; tests run in their package's directory.
const moduleRoot = "../.."

// binDir holds what goBuild makes and goes away with the suite.
var binDir string

// builtEnv names a folder that has what goBuild would make, for systems where
// the tests run and the go command does not.
const builtEnv = "WGR_BUILT"

// goBuild builds the package (a path from the top of the tree) and returns
// the binary's path. The binary has the race detector when the tests have it.
func goBuild(pkg string) (string, error) {
	name := filepath.Base(pkg)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if dir := os.Getenv(builtEnv); dir != "" {
		bin := filepath.Join(dir, name)
		_, err := os.Stat(bin)
		return bin, err
	}
	bin := filepath.Join(binDir, name)
	args := []string{"build", "-o", bin}
	if raceEnabled() {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = moduleRoot
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return bin, nil
}

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// patience limits one wait. It is no measure of anything: it is far longer
// than any wait that ends, so that it only turns a hang into a failure.
const patience = time.Minute

// limit is the moment at which a wait that starts now has to give up: early
// enough before the test run's own deadline to clean up and to print what
// happened.
func limit(t testing.TB) time.Time {
	end := time.Now().Add(patience)
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := d.Deadline(); ok {
			margin := min(time.Until(deadline)/10, 10*time.Second)
			if deadline = deadline.Add(-margin); deadline.Before(end) {
				end = deadline
			}
		}
	}
	return end
}

// limited is a context that ends at limit(t), for clients that take one.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithDeadline(t.Context(), limit(t))
	t.Cleanup(cancel)
	return ctx
}

// environ is this process's environment without what would change the binary
// under test or turn a child into a role, and with the additions. Every
// process that a test starts gets it.
func environ(add ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "WIREGUARDRUN_") ||
			strings.HasPrefix(kv, roleEnv+"=") || strings.HasPrefix(kv, sessionEnv+"=")
	})
	if raceEnabled() {
		// Without this every process of the suite sleeps a second at its end.
		env = append(env, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	}
	return append(env, add...)
}
