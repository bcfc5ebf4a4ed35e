// SPDX-License-Identifier: Apache-2.0

package ending

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestOnlyTheEndOfTheProcessMakesAnErrorNone(t *testing.T) {
	failure := errors.New("no answer")
	ended, end := context.WithCancel(context.Background())
	end()
	again := ctrl.Result{RequeueAfter: time.Second}
	for name, c := range map[string]struct {
		ctx    context.Context
		result ctrl.Result
		err    error

		want    ctrl.Result
		wantErr error
	}{
		"a failure is one while the process lives":    {context.Background(), ctrl.Result{}, failure, ctrl.Result{}, failure},
		"a success is one while the process lives":    {context.Background(), again, nil, again, nil},
		"a failure is none once the process ends":     {ended, ctrl.Result{}, failure, ctrl.Result{}, nil},
		"a success is one also when the process ends": {ended, again, nil, again, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			result, err := Orderly(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
				return c.result, c.err
			})).Reconcile(c.ctx, ctrl.Request{})
			g.Expect(result).To(Equal(c.want))
			if c.wantErr == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(c.wantErr))
			}
		})
	}
}
