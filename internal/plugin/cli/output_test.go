// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestFormatsOfOutput(t *testing.T) {
	r := &batchv1alpha1.JobRun{}
	r.Name = "x"
	type value struct {
		Name string `json:"name"`
	}
	for format, want := range map[string][2]string{
		"":                          {"jobrun.batch.reprise.dev/x created\n", "-"},
		"wide":                      {"jobrun.batch.reprise.dev/x created\n", "-"},
		"name":                      {"jobrun.batch.reprise.dev/x\n", "-"},
		"jsonpath={.metadata.name}": {"x", "-"},
		"go-template={{.kind}}":     {"JobRun", "-"},
		"json":                      {"", "{\n    \"name\": \"v\"\n}\n"},
		"yaml":                      {"", "name: v\n"},
	} {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			f := NewFactory(streams)
			o := AddOutput(&cobra.Command{}, "created")
			if format != "" {
				g.Expect(o.Set(format)).To(Succeed())
			}
			g.Expect(o.Human()).To(Equal(format == "" || format == "wide"))
			g.Expect(o.Object(f, r)).To(Succeed())
			if want[0] != "" {
				g.Expect(out.String()).To(Equal(want[0]))
			}
			out.Reset()
			err := o.Value(f, value{"v"})
			if want[1] == "-" {
				g.Expect(Code(err)).To(Equal(ExitUsage))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.String()).To(Equal(want[1]))
		})
	}
	NewWithT(t).Expect(AddOutput(&cobra.Command{}, "").Set("xml")).To(MatchError(ContainSubstring(`there is no format "xml"`)))
}
