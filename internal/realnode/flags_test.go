// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheAddressOfTheAPIIsTheOneThatKubernetesTellsPods(t *testing.T) {
	first, services, err := net.ParseCIDR(serviceIPs)
	if err != nil {
		t.Fatal(err)
	}
	first = first.To4()
	first[3]++ // Kubernetes gives its own service the first address after the network's
	if first.String() != apiService {
		t.Errorf("pods call %s, and the bridge has %s", first, apiService)
	}
	_, pods, err := net.ParseCIDR(podSubnet)
	if err != nil {
		t.Fatal(err)
	}
	if !pods.Contains(net.ParseIP(NodeIP)) || services.Contains(net.ParseIP(NodeIP)) || pods.Contains(first) {
		t.Errorf("the node is %s, pods have %s, services %s", NodeIP, pods, services)
	}
}

func TestEveryRequestIsInTheAuditLogAndTheLogIsOneFile(t *testing.T) {
	flags := apiServerFlags("/run/etcd.sock", []string{"--more"})
	for _, want := range []string{"--audit-log-path=" + inside + "/logs/audit.log", "--audit-log-maxsize=10000", "--more"} {
		if !slices.Contains(flags, want) {
			t.Errorf("%s is missing in %q", want, flags)
		}
	}
	if !strings.Contains(auditPolicy, "level: Metadata") || strings.Count(auditPolicy, "level:") != 1 {
		t.Errorf("the policy treats requests differently:\n%s", auditPolicy)
	}
}

func TestTheNodeIsLostWhenItIsSilentForTheGrace(t *testing.T) {
	if flags := controllerManagerFlags(25 * time.Second); !slices.Contains(flags, "--node-monitor-grace-period=25s") {
		t.Errorf("flags %q", flags)
	}
	data, err := kubeletConfig("reprise-x")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		CgroupRoot           string `json:"cgroupRoot"`
		LeaseDurationSeconds int    `json:"nodeLeaseDurationSeconds"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	if config.CgroupRoot != "/reprise-x" {
		t.Errorf("pods are in %s", config.CgroupRoot)
	}
	if renewed := time.Duration(config.LeaseDurationSeconds) * time.Second / 4; 3*renewed > DefaultNodeGrace {
		t.Errorf("a sign of life every %s is too few for a grace of %s", renewed, DefaultNodeGrace)
	}
}

func TestTheRuntimeStaysInTheClustersPlaces(t *testing.T) {
	config := containerdConfig("/store/with \"quotes\"/runc", "/store/cni", "pause:1")
	for _, want := range []string{
		`root = "/run/reprise/containerd"`, `BinaryName = "/store/with \"quotes\"/runc"`, `bin_dir = "/store/cni"`, `sandbox_image = "pause:1"`,
	} {
		if !strings.Contains(config, want) {
			t.Errorf("%s is missing in\n%s", want, config)
		}
	}
}

func TestPodsArePluggedIntoTheBridgeAndTheirWayOutIsTheNode(t *testing.T) {
	data, err := cniConfig()
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Plugins []struct {
			Bridge string
			IPAM   struct {
				Ranges [][]struct{ Subnet, Gateway string }
				Routes []struct{ Dst string }
			}
		}
	}
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	plugin := config.Plugins[0]
	if plugin.Bridge != bridge || plugin.IPAM.Ranges[0][0].Subnet != podSubnet || plugin.IPAM.Ranges[0][0].Gateway != NodeIP || plugin.IPAM.Routes[0].Dst != "0.0.0.0/0" {
		t.Errorf("got %s", data)
	}
}
