// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const account = "system:serviceaccount:house:manager"

// line is one event of the log.
func line(stage, user, verb, object, code string) string {
	if object != "" {
		object = `"objectRef":{` + object + `},`
	}
	return fmt.Sprintf(`{"kind":"Event","stage":%q,"verb":%q,"requestURI":"/apis/x?limit=500","user":{"username":%q},%s"responseStatus":{"code":%s}}`+"\n", stage, verb, user, object, code)
}

const runOfA = `"apiGroup":"batch.reprise.dev","resource":"jobruns","namespace":"a","name":"run"`

func read(t *testing.T, log string) []Request {
	t.Helper()
	all, err := Read(strings.NewReader(log), func(user string) bool { return user == account })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatCountsOfTheLog(t *testing.T) {
	get := Request{User: account, Verb: "get", Group: "batch.reprise.dev", Resource: "jobruns", Namespace: "a", Name: "run", Path: "/apis/x", Code: 200}
	status := get
	status.Verb, status.Resource, status.Code = "update", "jobruns/status", 409
	discovery := Request{User: account, Verb: "get", Path: "/apis/x", Code: 200}
	for name, c := range map[string]struct {
		log  string
		want []Request
	}{
		"nothing":                        {"", nil},
		"what was answered":              {line("ResponseComplete", account, "get", runOfA, "200"), []Request{get}},
		"a watch that goes on":           {line("ResponseStarted", account, "get", runOfA, "200"), []Request{get}},
		"a subresource":                  {line("ResponseComplete", account, "update", runOfA+`,"subresource":"status"`, "409"), []Request{status}},
		"no resource":                    {line("ResponseComplete", account, "get", "", "200"), []Request{discovery}},
		"what has no answer yet":         {line("RequestReceived", account, "get", runOfA, "200"), nil},
		"somebody else's":                {line("ResponseComplete", "admin", "get", runOfA, "200"), nil},
		"in the name of somebody else":   {strings.Replace(line("ResponseComplete", account, "get", runOfA, "200"), `"user"`, `"impersonatedUser":{"username":"b"},"user"`, 1), nil},
		"a last line that is not whole":  {line("ResponseComplete", account, "get", runOfA, "200") + `{"kind":"Ev`, []Request{get}},
		"the order is that of the lines": {line("ResponseComplete", account, "get", "", "200") + line("ResponseComplete", account, "get", runOfA, "200"), []Request{discovery, get}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(read(t, c.log)).To(Equal(c.want)) })
	}
}

func TestALineThatIsNoEventIsAnError(t *testing.T) {
	_, err := Read(strings.NewReader("{}\nnothing\n"), func(string) bool { return true })
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("line 2")))
}

const roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: wide}
rules:
- {apiGroups: [batch.reprise.dev], resources: [jobruns, jobruns/status], verbs: [get, update]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: not-bound}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: lease, namespace: house}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [leader], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: wide}
roleRef: {kind: ClusterRole, name: wide}
subjects: [{kind: User, name: manager}, {kind: ServiceAccount, namespace: house, name: manager}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: lease, namespace: house}
roleRef: {kind: Role, name: lease}
subjects: [{kind: ServiceAccount, namespace: house, name: manager}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: others}
roleRef: {kind: ClusterRole, name: not-bound}
subjects: [{kind: ServiceAccount, namespace: other, name: manager}, {kind: ServiceAccount, namespace: house, name: other}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: house}
`

func granted(t *testing.T) []Right {
	t.Helper()
	rights, err := Granted(roles, "house", "manager")
	if err != nil {
		t.Fatal(err)
	}
	return rights
}

func TestRightsAreThoseOfTheRolesThatAreBound(t *testing.T) {
	const ours, leases = "batch.reprise.dev", "coordination.k8s.io"
	NewWithT(t).Expect(granted(t)).To(ConsistOf(
		Right{"wide", ours, "jobruns", "get", "", ""},
		Right{"wide", ours, "jobruns", "update", "", ""},
		Right{"wide", ours, "jobruns/status", "get", "", ""},
		Right{"wide", ours, "jobruns/status", "update", "", ""},
		Right{"wide", leases, "leases", "get", "", ""},
		Right{"lease", leases, "leases", "create", "house", ""},
		Right{"lease", leases, "leases", "get", "house", "leader"},
	))
}

func TestRightsThatCannotBeListedAreAnError(t *testing.T) {
	for name, c := range map[string]struct{ namespace, account, text, says string }{
		"a star":                   {"other", "manager", roles, "a rule stands for more than it lists: role not-bound"},
		"a role that is not there": {"house", "manager", strings.ReplaceAll(roles, "{name: lease, namespace: house}\nrules", "{name: lease, namespace: other}\nrules"), "the binding lease is to the Role lease, which is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Granted(c.text, c.namespace, c.account)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestTheJudgementOfARequest(t *testing.T) {
	request := func(verb, group, resource, namespace, name string, code int) Request {
		return Request{User: account, Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name, Path: "/p", Code: code}
	}
	const ours, leases = "batch.reprise.dev", "coordination.k8s.io"
	for name, c := range map[string]struct {
		asked  Request
		uses   string // the right that it needs, "" for none
		beyond bool
	}{
		"a right of everywhere in one namespace":           {request("get", ours, "jobruns", "a", "run", 200), `get jobruns of group "batch.reprise.dev" (by role wide)`, false},
		"a right of everywhere, asked everywhere":          {request("get", ours, "jobruns", "", "", 200), `get jobruns of group "batch.reprise.dev" (by role wide)`, false},
		"an answer that there is none":                     {request("get", ours, "jobruns", "a", "run", 404), `get jobruns of group "batch.reprise.dev" (by role wide)`, false},
		"a conflict":                                       {request("update", ours, "jobruns/status", "a", "run", 409), `update jobruns/status of group "batch.reprise.dev" (by role wide)`, false},
		"the narrowest of two rights":                      {request("get", leases, "leases", "house", "leader", 200), `get leases of group "coordination.k8s.io", named leader, in namespace house (by role lease)`, false},
		"the wider one, where the narrow one is no use":    {request("get", leases, "leases", "house", "run", 200), `get leases of group "coordination.k8s.io" (by role wide)`, false},
		"the wider one, for the name in another namespace": {request("get", leases, "leases", "a", "leader", 200), `get leases of group "coordination.k8s.io" (by role wide)`, false},
		"a right of one namespace in another":              {request("create", leases, "leases", "a", "run", 403), "", true},
		"a right of one namespace, asked everywhere":       {request("create", leases, "leases", "", "", 403), "", true},
		"a subresource without a right":                    {request("get", ours, "jobruns/scale", "a", "run", 403), "", true},
		"what was answered though nobody here granted it":  {request("delete", ours, "jobruns", "a", "run", 200), "", true},
		"a refusal of what is granted, at the install":     {request("get", ours, "jobruns", "a", "run", 403), "", false},
		"which kinds there are":                            {Request{User: account, Verb: "get", Path: "/apis/batch.reprise.dev/v1alpha1", Code: 200}, "", false},
		"another path":                                     {Request{User: account, Verb: "get", Path: "/metrics", Code: 403}, "", true},
		"a path that begins alike":                         {Request{User: account, Verb: "get", Path: "/apisecret", Code: 403}, "", true},
		"to change which kinds there are":                  {Request{User: account, Verb: "post", Path: "/apis", Code: 403}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rights := granted(t)
			var j Judge
			j.Show(rights, []Request{c.asked, c.asked})
			g.Expect(j.Beyond()).To(HaveLen(map[bool]int{true: 1}[c.beyond]))
			unused := fmt.Sprint(j.Unused(rights))
			for _, right := range rights {
				if right.String() == c.uses {
					g.Expect(unused).NotTo(ContainSubstring(c.uses))
				} else {
					g.Expect(unused).To(ContainSubstring(right.String()))
				}
			}
		})
	}
}

func TestARightThatOneOfSeveralAccountsHasUsedIsUsed(t *testing.T) {
	g := NewWithT(t)
	house := []Right{{"r", "", "pods", "get", "house", ""}, {"r", "", "pods", "list", "house", ""}}
	garden := []Right{{"r", "", "pods", "get", "garden", ""}, {"r", "", "pods", "list", "garden", ""}}
	var j Judge
	j.Show(house, []Request{{Verb: "get", Resource: "pods", Namespace: "house", Code: 200}})
	j.Show(garden, []Request{{Verb: "list", Resource: "pods", Namespace: "garden", Code: 200}, {Verb: "list", Resource: "pods", Namespace: "house", Code: 403}})
	g.Expect(j.Unused(house)).To(BeEmpty())
	g.Expect(j.Beyond()).To(ConsistOf(HaveField("Namespace", "house")), "each is judged by its own")
}

func TestOfWhatIsAskedWithoutARightOneExampleIsShown(t *testing.T) {
	g := NewWithT(t)
	var j Judge
	for _, name := range []string{"a", "b", "c"} {
		j.Show(nil, []Request{{Verb: "get", Resource: "pods", Name: name, Code: 403}, {Verb: "list", Resource: "pods", Code: 403}, {Verb: "get", Path: "/" + name, Code: 403}})
	}
	g.Expect(j.Beyond()).To(HaveLen(3))
}
