package proc

import (
	"slices"
	"testing"
)

func TestEnviron(t *testing.T) {
	base := []string{"A=1", "B=2", "C=a=b"}
	for _, test := range []struct {
		name      string
		base, set []string
		want      []string
	}{
		{"nothing", nil, nil, []string{}},
		{"as it was", base, nil, base},
		{"one more", base, []string{"D=4"}, []string{"A=1", "B=2", "C=a=b", "D=4"}},
		{"another value", base, []string{"B=x=y"}, []string{"A=1", "B=x=y", "C=a=b"}},
		{"an empty value", base, []string{"A="}, []string{"A=", "B=2", "C=a=b"}},
		{"the last counts", []string{"A=1", "A=2"}, []string{"A=3", "B=1", "B=2"}, []string{"A=3", "B=2"}},
		{"a longer name", base, []string{"AA=1"}, []string{"A=1", "B=2", "C=a=b", "AA=1"}},
		{"names that begin with =", []string{"=C:=C:\\x", "=D:=D:\\y", "A=1"}, []string{"=D:=D:\\z"}, []string{"=C:=C:\\x", "=D:=D:\\z", "A=1"}},
		{"no assignments", []string{"word", "other", "=", "A=1"}, []string{"word"}, []string{"word", "other", "=", "A=1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := slices.Clone(test.base)
			if got := Environ(test.base, test.set); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
			if !slices.Equal(test.base, before) {
				t.Errorf("the base is changed: %q", test.base)
			}
		})
	}
}

// What is set must not be written behind the end of the caller's slice.
func TestEnvironLeavesTheCallersArrayAlone(t *testing.T) {
	array := []string{"A=1", "B=2", "untouched"}
	Environ(array[:2], []string{"C=3"})
	if array[2] != "untouched" {
		t.Errorf("the array behind the base is changed: %q", array)
	}
}

func TestGetenv(t *testing.T) {
	env := []string{"word", "AB=no", "A=x=y", "A=later", "E="}
	for name, want := range map[string]string{"A": "x=y", "E": "", "word": "", "B": "", "": ""} {
		if got := Getenv(env, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
