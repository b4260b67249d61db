//go:build unix

package guard

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/wireguardrun/wireguardrun/"

// Imports run one way, and whoever takes the library gets little with it.
func TestImports(t *testing.T) {
	for _, goos := range []string{"linux", "windows"} {
		for pkg, allowed := range map[string][]string{
			"guard":             {"guard", "internal/pipes", "internal/handover"},
			"internal/handover": {"internal/handover", "internal/pipes"},
			"internal/pipes":    {"internal/pipes"},
		} {
			t.Run(goos+"/"+pkg, func(t *testing.T) {
				t.Parallel()
				may := map[string]bool{}
				for _, p := range allowed {
					may[module+p] = true
				}
				list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module+pkg)
				list.Env = append(os.Environ(), "GOOS="+goos)
				list.Stderr = os.Stderr
				out, err := list.Output()
				if err != nil {
					t.Fatal(err)
				}
				deps := strings.Fields(string(out))
				if len(deps) == 0 {
					t.Fatal("no package is listed")
				}
				for _, dep := range deps {
					if !may[dep] && !strings.HasPrefix(dep, "golang.org/x/sys/") {
						t.Errorf("depends on %s", dep)
					}
				}
			})
		}
	}
}
