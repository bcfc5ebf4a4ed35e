// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	named    = regexp.MustCompile(`^reprise_[a-z]+(_[a-z]+)*$`)
	sentence = regexp.MustCompile(`^[A-Z0-9].*\.$`)
)

func TestEveryMetricIsNamedAsPrometheusHasItAndExplained(t *testing.T) {
	all := All()
	if len(all) < 30 {
		t.Fatalf("there are %d metrics", len(all))
	}
	for i, d := range all {
		t.Run(d.Name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(d.Name).To(MatchRegexp(named.String()))
			g.Expect(d.Help).To(MatchRegexp(sentence.String()))
			g.Expect(strings.HasSuffix(d.Name, "_total")).To(Equal(d.Kind == Counter))
			if d.Kind == Histogram {
				g.Expect(d.Name).To(HaveSuffix("_seconds"))
			}
			if i > 0 {
				g.Expect(d.Name > all[i-1].Name).To(BeTrue(), "sorted, and once each")
			}
		})
	}
}

func TestNoLabelIsFreeButTheNamesOfNamespacesAndQueues(t *testing.T) {
	for _, d := range All() {
		for _, l := range d.Labels {
			if free := l.Values == nil; free != (l.Name == "namespace" || l.Name == "queue") {
				t.Errorf("label %s of %s: free is %t", l.Name, d.Name, free)
			}
		}
	}
}

func TestAValueThatIsNotOfTheFixedSetIsOther(t *testing.T) {
	g := NewWithT(t)
	g.Expect(RunsFinished.bounded([]string{"ns", "q", "Failed", "WorkFailed"})).To(Equal([]string{"ns", "q", "Failed", "WorkFailed"}))
	g.Expect(RunsFinished.bounded([]string{"ns", "q", "Failed", "made up"})).To(Equal([]string{"ns", "q", "Failed", "Other"}))
}

// constants returns the string constants of a file whose names begin so, in the block with the comment.
func constants(t *testing.T, file, prefix, comment string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, decl := range parsed.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST || !strings.HasPrefix(block.Doc.Text(), comment) {
			continue
		}
		for _, spec := range block.Specs {
			c := spec.(*ast.ValueSpec)
			if !strings.HasPrefix(c.Names[0].Name, prefix) {
				continue
			}
			value, err := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		t.Fatalf("%s has no such constants", file)
	}
	return values
}

func TestEveryReasonOfARunIsOneThatMetricsKnow(t *testing.T) {
	NewWithT(t).Expect(runReasonLabel.Values).To(ConsistOf(constants(t, "../../api/v1alpha1/reasons.go", "Reason", "Reasons of a run's phase")))
}

func TestEveryReasonToWaitIsOneThatMetricsKnow(t *testing.T) {
	codes := constants(t, "../admission/policy.go", "Code", "Codes of a Reason")
	codes = slices.DeleteFunc(codes, func(c string) bool { return c == "Admitted" }) // it waits no more
	NewWithT(t).Expect(heldReasonLabel.Values).To(ConsistOf(codes))
}

func TestEveryEndOfAReservationIsOneThatMetricsKnow(t *testing.T) {
	all := constants(t, "../../api/v1alpha1/directreservation_types.go", "Reason", "Reasons of a reservation's phase")
	waiting := []string{"WaitingForTurn", "NextInLine", "Granted"}
	all = slices.DeleteFunc(all, func(r string) bool { return slices.Contains(waiting, r) })
	NewWithT(t).Expect(reservationReasonLabel.Values).To(ConsistOf(all))
}

// silent returns what is told of SilentRuns, by namespace.
func silent(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := crmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == SilentRuns.Name {
				told[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return told
}

func anyQueue(_, _ string) bool { return true }

func TestSeveralManagersInOneProcessAreAddedUp(t *testing.T) {
	g := NewWithT(t)
	a, b := NewCensus(anyQueue), NewCensus(anyQueue)
	share := []Share{{Of: SilentRuns, Value: 2, Labels: []string{"both", "main"}}}
	a.Change(nil, share)
	b.Change(nil, share)
	withdraw := Publish(a, "1.1")
	defer withdraw()
	both := Publish(b, "1.2")
	g.Expect(silent(t)).To(Equal(map[string]float64{"both": 4}))
	both()
	g.Expect(silent(t)).To(Equal(map[string]float64{"both": 2}))
	a.Change(share, nil)
	g.Expect(silent(t)).To(BeEmpty())
}

func TestAShareOfNothingShowsZero(t *testing.T) {
	g := NewWithT(t)
	c := NewCensus(anyQueue)
	zero, one := []Share{{Of: SilentRuns, Labels: []string{"zero", "main"}}}, []Share{{Of: SilentRuns, Value: 1, Labels: []string{"zero", "main"}}}
	defer Publish(c, "1.1")()
	c.Change(nil, zero)
	c.Change(nil, one)
	c.Change(one, nil)
	g.Expect(silent(t)).To(Equal(map[string]float64{"zero": 0}))
	c.Change(zero, nil)
	g.Expect(silent(t)).To(BeEmpty())
}
