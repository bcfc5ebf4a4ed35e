// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
)

// stay keeps everything up until ctx ends, and says what can be done with it.
func (s *stage) stay(ctx context.Context) error {
	s.say.step("It is all up until Ctrl-C. In another terminal:")
	s.say.line(`
     export KUBECONFIG=%[1]s
     alias kubectl=%[2]s
     kubectl config set-context --current --namespace=%[3]s

     kubectl get jr -w
     kubectl explain jobrun.spec.work.http
     kubectl patch jq agents --type=merge -p '{"spec":{"suspend":true}}'     # and false again
     kubectl get jr --field-selector status.phase=Queued
     kubectl describe jr slow-research

     curl -s http://%[4]s/metrics | grep reconcile_total
     tail -f %[5]s/work.log`,
		s.plane.Kubeconfig(), s.plane.Kubectl(ctx).Path, s.ns, s.manager.metrics, s.dir)
	if s.server.address() != samplesAddress {
		s.say.note("The work server is at %s: in the samples, write that in place of %s.", s.server.address(), samplesAddress)
	}
	select {
	case <-ctx.Done():
		s.say.line("")
		return nil
	case <-s.manager.done:
		return s.manager.lives()
	case <-s.plane.Ended():
		return errors.Join(errors.New("the control plane ended"), s.plane.Err())
	}
}
