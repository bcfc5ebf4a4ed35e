// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// verdict is what the tools make of an object.
type verdict struct {
	kstatus status.Status
	argo    string
	words   string // beside Argo CD's
}

// The verdicts that a status of kstatus and a health of Argo CD make together.
var (
	inProgress = verdict{kstatus: status.InProgressStatus, argo: "Progressing"}
	current    = verdict{kstatus: status.CurrentStatus, argo: "Healthy"}
	failed     = verdict{kstatus: status.FailedStatus, argo: "Degraded"}
)

// judge lets both tools judge an object. It also holds the object against what neither may ever meet: Ready=False, which both
// take for "in progress" however long it lasts.
func judge(u *unstructured.Unstructured) (verdict, error) {
	for _, c := range conditions(u) {
		if c["type"] == "Ready" && c["status"] != "True" {
			return verdict{}, fmt.Errorf("%s %s has Ready=%v", u.GetKind(), u.GetName(), c["status"])
		}
	}
	result, err := status.Compute(u)
	if err != nil {
		return verdict{}, err
	}
	health, words, err := argoHealth(script(u.GetKind()), u)
	return verdict{kstatus: result.Status, argo: health, words: words}, err
}

// argoHealth runs a health check as Argo CD does: with the package, base and table libraries alone, and for a second at most.
func argoHealth(script string, u *unstructured.Unstructured) (health, words string, err error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return "", "", err
		}
	}
	l.SetGlobal("obj", toLua(l, u.Object))
	if err := l.DoString(script); err != nil {
		return "", "", err
	}
	answer, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", errors.New("the health check returns no table")
	}
	text, ok := answer.RawGetString("message").(lua.LString)
	if !ok {
		return "", "", fmt.Errorf("the message is %s", answer.RawGetString("message"))
	}
	return answer.RawGetString("status").String(), string(text), nil
}

// toLua makes a value of JSON one of Lua.
func toLua(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		list := l.NewTable()
		for _, item := range v {
			list.Append(toLua(l, item))
		}
		return list
	case map[string]any:
		table := l.NewTable()
		for key, item := range v {
			table.RawSetString(key, toLua(l, item))
		}
		return table
	default:
		return lua.LNil
	}
}

// is expects the verdict of both tools on the object as it is, and returns the words beside it.
func (w *world) is(u *unstructured.Unstructured, want verdict) string {
	w.t.Helper()
	got, err := judge(u)
	words := got.words
	got.words = ""
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(got).To(Equal(want), "%s %s: %v", u.GetKind(), u.GetName(), u.Object["status"])
	return words
}

// becomes waits for the verdict of both tools on an object, and returns it.
func (w *world) becomes(kind, name string, want verdict) *unstructured.Unstructured {
	w.t.Helper()
	var u *unstructured.Unstructured
	w.Eventually(func() (verdict, error) {
		var err error
		if u, err = w.read(kind, name); err != nil {
			return verdict{}, err
		}
		got, err := judge(u)
		got.words = ""
		return got, err
	}).Should(Equal(want), func() string { return fmt.Sprintf("%s %s: %v", kind, name, u.Object["status"]) })
	return u
}
