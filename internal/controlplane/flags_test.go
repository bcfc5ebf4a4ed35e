// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"
	"strings"
	"testing"
)

func TestNothingListensBeyondLoopback(t *testing.T) {
	for name, tc := range map[string]struct{ flags, want []string }{
		"etcd": {
			EtcdFlags("/d", "/s/etcd.sock", false),
			[]string{"--listen-client-urls=unix:///s/etcd.sock", "--listen-peer-urls=http://127.0.0.1:0"},
		},
		"kube-apiserver": {
			apiServerFlags("/d", "/s/etcd.sock", 6443, nil),
			[]string{"--bind-address=127.0.0.1", "--secure-port=6443"},
		},
		"kube-controller-manager": {
			controllerManagerFlags("/d/kubeconfig", nil),
			[]string{"--secure-port=0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, want := range tc.want {
				if !slices.Contains(tc.flags, want) {
					t.Errorf("%s is not among %v", want, tc.flags)
				}
			}
		})
	}
}

func TestFurtherFlagsAndControllersAreAdded(t *testing.T) {
	if flags := apiServerFlags("/d", "/s", 1, []string{"--v=4"}); flags[len(flags)-1] != "--v=4" {
		t.Errorf("the last flag, which wins, is %s", flags[len(flags)-1])
	}
	joined := strings.Join(controllerManagerFlags("/k", []string{"cronjob-controller"}), " ")
	if !strings.Contains(joined, "job-controller,") || !strings.Contains(joined, ",cronjob-controller ") {
		t.Errorf("controllers: %s", joined)
	}
}

func TestEtcdIsDurableOnRequestOnly(t *testing.T) {
	const flag = "--unsafe-no-fsync"
	if !slices.Contains(EtcdFlags("/d", "/s", false), flag) || slices.Contains(EtcdFlags("/d", "/s", true), flag) {
		t.Errorf("%s does not follow the option", flag)
	}
}
