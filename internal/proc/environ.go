package proc

import "strings"

// Environ returns base with the assignments of set made in order. Of several
// values of one name the last counts.
func Environ(base, set []string) []string {
	env := make([]string, 0, len(base)+len(set))
	index := make(map[string]int, len(base)+len(set))
	for _, kv := range append(base[:len(base):len(base)], set...) {
		key := envKey(nameOf(kv))
		if at, seen := index[key]; seen {
			env[at] = kv
			continue
		}
		index[key] = len(env)
		env = append(env, kv)
	}
	return env
}

// nameOf returns the name in kv. A leading "=" belongs to it: Windows keeps the
// current directory of each drive in variables such as "=C:".
func nameOf(kv string) string {
	for i := 1; i < len(kv); i++ {
		if kv[i] == '=' {
			return kv[:i]
		}
	}
	return kv
}

// Getenv returns the value of name in env, or "".
func Getenv(env []string, name string) string {
	value, _ := LookupEnv(env, name)
	return value
}

// LookupEnv returns the value of name in env, and whether there is one.
func LookupEnv(env []string, name string) (value string, set bool) {
	for _, kv := range env {
		if n, v, ok := strings.Cut(kv, "="); ok && envKey(n) == envKey(name) {
			return v, true
		}
	}
	return "", false
}
