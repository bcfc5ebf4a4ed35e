// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const cronJob = `apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
spec:
  schedule: "0 3 * * *"
  timeZone: Europe/Lisbon
  suspend: true
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 600
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - name: report
            image: registry.example.com/report:1
            command: [report, --all]
            resources:
              requests: {cpu: 100m}
`

func TestWhatACronJobIsConvertedToIsAccepted(t *testing.T) {
	w := newWorld(t)
	kubectl := func(in string, args ...string) string {
		cmd := plane.Kubectl(t.Context(), append(args, "-n", w.ns)...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.CombinedOutput()
		w.Expect(err).NotTo(HaveOccurred(), string(out))
		w.Expect(string(out)).NotTo(ContainSubstring("Warning"))
		return string(out)
	}
	kubectl(cronJob, "apply", "-f", "-")

	fromCluster := w.reprise("convert", "cronjob/nightly", "--queue=reports")
	w.Expect(fromCluster.code).To(BeZero(), fromCluster.err)
	w.Expect(fromCluster.err).To(ContainSubstring("nightly: restartPolicy OnFailure became Never"))
	kubectl(fromCluster.out, "apply", "--validate=strict", "-f", "-")
	sj := &batchv1alpha1.ScheduledJob{}
	w.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "nightly"}, sj)).To(Succeed())
	w.Expect(sj.Spec.Suspend).To(BeTrue())
	w.Expect(*sj.Spec.RunTemplate.RetryPolicy.MaxRetries).To(BeEquivalentTo(2))
	w.Expect(sj.Spec.RunTemplate.Queue).To(Equal("reports"))

	fromFile := launch(t, nil, "convert", "-f", file(t, cronJob), "--queue=reports").result()
	w.Expect(fromFile.code).To(BeZero(), "without a cluster: %s", fromFile.err)
	w.Expect(fromCluster.out).To(Equal(strings.Replace(fromFile.out, "  name: nightly\n", "  name: nightly\n  namespace: "+w.ns+"\n", 1)),
		"what the API server has filled in is not printed")
}
