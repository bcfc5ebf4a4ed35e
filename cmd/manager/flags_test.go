// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"net"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"reprise.dev/reprise/internal/operator"
)

func TestHelpListsEveryFlagWithAText(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	p := launch(t, nil, "--help")
	g.Expect(p.exitCode()).To(BeZero())
	help := texts(p.log.String())
	for name, text := range help {
		g.Expect(text).NotTo(BeEmpty(), "-%s is explained", name)
	}
	options := operator.DefaultOptions()
	ours := flag.NewFlagSet("manager", flag.ContinueOnError)
	bind(ours, &options)
	ours.VisitAll(func(f *flag.Flag) { g.Expect(help).To(HaveKey(f.Name)) })
	for _, name := range []string{"kubeconfig", "version", "zap-log-level"} {
		g.Expect(help).To(HaveKey(name))
	}
}

// texts takes the texts of the flags from what --help prints.
func texts(help string) map[string]string {
	found := map[string]string{}
	name := ""
	for line := range strings.Lines(help) {
		switch {
		case strings.HasPrefix(line, "  -"):
			name, _, _ = strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "  -")), " ")
			found[name] = ""
		case name != "":
			found[name] += strings.TrimSpace(line)
		}
	}
	return found
}

func TestVersionIsTheStampedOne(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	p := launch(t, nil, "--version")
	g.Expect(p.exitCode()).To(BeZero())
	g.Expect(p.out.String()).To(Equal(stamp + "\n"))
}

func TestWhatCannotBeMeantEndsTheProcessWithAClearMessage(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	cluster := []string{"--kubeconfig=" + plane.Kubeconfig(), "--namespaces=none", "--health-probe-bind-address=0", "--metrics-bind-address=0"}
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a flag that does not exist":                {[]string{"--leader"}, "flag provided but not defined: -leader"},
		"an argument that is no flag":               {[]string{"start"}, `unexpected argument "start"; every setting is a flag, see --help`},
		"a policy that does not exist":              {[]string{"--recovery-policy=Ignore"}, `the recovery policy is "Ignore"; use Fail or Adopt`},
		"a duration without a unit":                 {[]string{"--http-timeout=30"}, `invalid value "30" for flag -http-timeout`},
		"no time for a call":                        {[]string{"--http-timeout=0s"}, "the default HTTP timeout is 0s; use at least 1s"},
		"a drain that ended before it began":        {[]string{"--drain-timeout=-1s"}, "the drain timeout is -1s; use 0 or more"},
		"a leader that renews too late":             {[]string{"--leader-elect-renew-deadline=20s"}, "the lease duration (15s) must be longer than the renew deadline (20s)"},
		"a lease in no namespace":                   {[]string{"--leader-elect-namespace="}, "the namespace of the leader lease is empty"},
		"a range that is none":                      {[]string{"--allow-outgoing-cidr=localhost"}, "use a comma-separated list of address ranges such as 127.0.0.0/8,fd00::/8"},
		"no cluster":                                {nil, "finding the API server (use --kubeconfig outside a cluster)"},
		"a kubeconfig that is not there":            {[]string{"--kubeconfig=/nowhere/config"}, "/nowhere/config: no such file or directory"},
		"an address for probes that somebody uses":  {append(cluster, "--health-probe-bind-address="+taken.Addr().String()), "address already in use"},
		"an address for metrics that somebody uses": {append(cluster, "--metrics-bind-address="+taken.Addr().String()), "address already in use"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := launch(t, nil, c.args...)
			g.Expect(p.exitCode()).NotTo(BeZero())
			g.Expect(p.log.String()).To(ContainSubstring(c.says))
			g.Expect(p.log.String()).NotTo(ContainSubstring("goroutine "))
		})
	}
}
