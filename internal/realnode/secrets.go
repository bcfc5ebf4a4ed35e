// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"net"
	"os"
	"path/filepath"
	"time"

	"reprise.dev/reprise/internal/controlplane"
)

const apiURL = "https://" + NodeIP + ":443"

// writeFiles writes everything that the processes read, and returns the administrator's access.
func writeFiles(now time.Time, cgroup string, runtime runtimeBinaries, pauseImage, kubectl string) (*controlplane.Access, error) {
	ca, err := controlplane.NewAuthority(now)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		caFile:             ca.Cert,
		auditPolicyFile:    []byte(auditPolicy),
		containerdConfFile: []byte(containerdConfig(runtime.runc, runtime.cni, pauseImage)),
	}
	if err := addSecrets(files, ca, now); err != nil {
		return nil, err
	}
	if files[kubeletConfigFile], err = kubeletConfig(cgroup); err != nil {
		return nil, err
	}
	if files[filepath.Join(cniConfDir, "reprise.conflist")], err = cniConfig(); err != nil {
		return nil, err
	}
	for name, data := range files {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(at(name), data, 0o600); err != nil {
			return nil, err
		}
	}
	if err := writeAccess(ca, now); err != nil {
		return nil, err
	}
	admin, err := ca.Client(now, "reprise-admin", "system:masters")
	if err != nil {
		return nil, err
	}
	return controlplane.NewAccess(controlplane.ClientConfig(apiURL, ca, admin), os.Getenv(dirVariable), kubectl)
}

// addSecrets adds what the API server shows and signs with.
func addSecrets(files map[string][]byte, ca *controlplane.Authority, now time.Time) error {
	server, err := ca.Server(now, net.ParseIP(NodeIP), net.ParseIP(apiService))
	if err != nil {
		return err
	}
	toKubelet, err := ca.Client(now, "kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	files[serverCertFile], files[serverKeyFile] = server.Cert, server.Key
	files[toKubeletCertFile], files[toKubeletKeyFile] = toKubelet.Cert, toKubelet.Key
	files[signerKeyFile], err = controlplane.NewSigningKey()
	return err
}

// writeAccess lets each process in as what it is, with the rights that Kubernetes gives to such.
func writeAccess(ca *controlplane.Authority, now time.Time) error {
	for _, user := range []struct {
		dir, name string
		groups    []string
	}{
		{controllersDir, "system:kube-controller-manager", nil},
		{schedulerDir, "system:kube-scheduler", nil},
		{kubeletAccessDir, "system:node:" + NodeName, []string{"system:nodes"}},
	} {
		certificate, err := ca.Client(now, user.name, user.groups...)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(at(user.dir), 0o700); err != nil {
			return err
		}
		if _, err := controlplane.NewAccess(controlplane.ClientConfig(apiURL, ca, certificate), at(user.dir), ""); err != nil {
			return err
		}
	}
	return nil
}
