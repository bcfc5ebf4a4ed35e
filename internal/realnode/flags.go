// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"
)

// Files with secrets and settings, below the cluster's directory.
const (
	caFile             = "config/ca.crt"
	serverCertFile     = "config/apiserver.crt"
	serverKeyFile      = "config/apiserver.key"
	signerKeyFile      = "config/service-accounts.key"
	toKubeletCertFile  = "config/apiserver-to-kubelet.crt"
	toKubeletKeyFile   = "config/apiserver-to-kubelet.key"
	auditPolicyFile    = "config/audit-policy.yaml"
	kubeletConfigFile  = "config/kubelet.json"
	controllersDir     = "config/" + controllersName
	schedulerDir       = "config/" + schedulerName
	kubeletAccessDir   = "config/" + kubeletName
	containerdConfFile = "config/containerd.toml"
	cniConfDir         = "config/cni"
	pluginDir          = "config/volume-plugins"
)

// auditPolicy has every request once, when it is answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
`

func at(name string) string { return filepath.Join(inside, name) }

// apiServerFlags are those of an API server as a cluster has it in production, save for the number of its instances.
func apiServerFlags(etcdSocket string, more []string) []string {
	return append([]string{
		"--etcd-servers=unix://" + etcdSocket,
		"--bind-address=0.0.0.0",
		"--advertise-address=" + NodeIP,
		"--secure-port=443", // the port of the service that pods call
		"--tls-cert-file=" + at(serverCertFile),
		"--tls-private-key-file=" + at(serverKeyFile),
		"--client-ca-file=" + at(caFile),
		"--kubelet-client-certificate=" + at(toKubeletCertFile),
		"--kubelet-client-key=" + at(toKubeletKeyFile),
		"--kubelet-preferred-address-types=InternalIP", // there is no DNS
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + at(signerKeyFile),
		"--service-account-signing-key-file=" + at(signerKeyFile),
		"--service-cluster-ip-range=" + serviceIPs,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--audit-policy-file=" + at(auditPolicyFile),
		"--audit-log-path=" + at(auditLogFile),
		"--audit-log-maxsize=10000", // MB: one file, never a part of the story in another one
		"--profiling=false",
	}, more...)
}

// controllerManagerFlags run all controllers, with limits that never make a test wait.
func controllerManagerFlags(grace time.Duration) []string {
	return []string{
		"--kubeconfig=" + at(filepath.Join(controllersDir, kubeconfigFile)),
		"--controllers=*",
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file=" + at(signerKeyFile),
		"--root-ca-file=" + at(caFile),
		"--flex-volume-plugin-dir=" + at(pluginDir),
		"--node-monitor-period=1s",
		"--node-monitor-grace-period=" + grace.String(),
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--profiling=false",
	}
}

func schedulerFlags() []string {
	return []string{
		"--kubeconfig=" + at(filepath.Join(schedulerDir, kubeconfigFile)),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--profiling=false",
	}
}

func kubeletFlags() []string {
	return []string{
		"--config=" + at(kubeletConfigFile),
		"--kubeconfig=" + at(filepath.Join(kubeletAccessDir, kubeconfigFile)),
		"--hostname-override=" + NodeName,
		"--node-ip=" + NodeIP,
		"--root-dir=" + at(kubeletDir),
		"--cert-dir=" + at(filepath.Join(kubeletDir, "pki")),
	}
}

// healthPort is where the kubelet tells that it works, on the loopback of the cluster's network.
const healthPort = 10248

// kubeletConfig is a KubeletConfiguration. It gives a sign of life often, so that tests need not wait long to see it lost, and
// evicts nothing and removes no image only because the machine's disk is rather full.
func kubeletConfig(cgroup string) ([]byte, error) {
	return json.MarshalIndent(map[string]any{
		"apiVersion":     "kubelet.config.k8s.io/v1beta1",
		"kind":           "KubeletConfiguration",
		"address":        NodeIP,
		"healthzPort":    healthPort,
		"authentication": map[string]any{"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true}, "x509": map[string]any{"clientCAFile": at(caFile)}},
		"authorization":  map[string]any{"mode": "Webhook"},

		"containerRuntimeEndpoint": "unix://" + runtimeSocket,
		"cgroupRoot":               "/" + cgroup,
		"cgroupDriver":             "cgroupfs",
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"oomScoreAdj":              0, // lower ones need a right that a container's root lacks
		"resolvConf":               "",
		"clusterDNS":               []string{NodeIP}, // where nothing answers: a question about a name fails at once
		"podLogsDir":               at(podLogsDir),
		"volumePluginDir":          at(pluginDir),
		"maxPods":                  250,

		"nodeStatusUpdateFrequency":   "2s",
		"nodeStatusReportFrequency":   "10s",
		"nodeLeaseDurationSeconds":    8, // renewed four times as often
		"kubeAPIQPS":                  200,
		"kubeAPIBurst":                400,
		"eventRecordQPS":              0,
		"evictionHard":                map[string]string{"memory.available": "50Mi", "nodefs.available": "50Mi", "imagefs.available": "50Mi"},
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
	}, "", "  ")
}

// containerdConfig keeps everything below the cluster's directory, but for sockets, which are in the cluster's own /run.
func containerdConfig(runc, cniDir, pauseImage string) string {
	return fmt.Sprintf(`version = 2
root = %q
state = "/run/containerd"

[grpc]
  address = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  # The machine may not let us lower what the kernel kills last.
  restrict_oom_score_adj = true
  # A profile would be loaded into the machine's kernel.
  disable_apparmor = true
  netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = %q
  conf_dir = %q

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = %q
  SystemdCgroup = false
`, at(containerdDir), runtimeSocket, pauseImage, cniDir, at(cniConfDir), runc)
}

// cniConfig plugs every pod into the bridge, which is its way to everything else.
func cniConfig() ([]byte, error) {
	return json.MarshalIndent(map[string]any{
		"cniVersion": "0.4.0", // what every plugin of the last years understands
		"name":       "reprise",
		"plugins": []any{map[string]any{
			"type":   "bridge",
			"bridge": bridge,
			"ipam": map[string]any{
				"type":    "host-local",
				"dataDir": "/run/cni",
				"ranges":  []any{[]any{map[string]any{"subnet": podSubnet, "gateway": NodeIP}}},
				"routes":  []any{map[string]any{"dst": "0.0.0.0/0"}},
			},
		}},
	}, "", "  ")
}
