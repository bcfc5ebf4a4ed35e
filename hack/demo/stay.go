// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
)

// stay keeps everything up until ctx ends, and says what can be done with it.
func (s *stage) stay(ctx context.Context) error {
	s.say.step("It is all up until Ctrl-C. In another terminal:")
	kubectl := s.plane.Kubectl(ctx)
	s.say.line(`
     export KUBECONFIG=%[1]s
     alias kubectl=%[2]s
     kubectl config set-context --current --namespace=%[3]s

     kubectl get jr -w                                        # the heartbeat goes on
     kubectl explain jobrun.spec.work.http
     kubectl delete -f config/samples/05-run-slow.yaml --wait; kubectl apply -f config/samples/05-run-slow.yaml
     kubectl patch jr slow-research --type=merge -p '{"spec":{"cancel":true}}'
     kubectl patch jq agents --type=merge -p '{"spec":{"suspend":true}}'

     curl -s http://%[4]s/metrics | grep reprise_             # the manager, process %[5]d
     cat %[6]s/work.log                # the server's log`,
		s.plane.Kubeconfig(), kubectl.Path, s.ns, s.manager.metrics, s.manager.pid(), s.dir)
	if s.server.address() != samplesAddress {
		s.say.note("(the work server is at %s: the samples need that in place of %s)", s.server.address(), samplesAddress)
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
