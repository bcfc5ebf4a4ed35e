// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// startTimeout bounds the wait for each process. A start takes seconds; a machine may be busy.
	startTimeout = 2 * time.Minute
	// poll is the time between two looks at a process that is starting.
	poll = 50 * time.Millisecond
	// portAttempts is how often another port is tried when the chosen one was taken before the API server had it.
	portAttempts = 5
)

// start brings up the processes one after the other. Whatever it leaves behind on an error, Stop removes.
func (p *Plane) start(ctx context.Context, assets Assets, o Options) error {
	now := time.Now()
	if err := p.makeDirs(o.Dir); err != nil {
		return err
	}
	ca, err := p.writeSecrets(now)
	if err != nil {
		return err
	}
	socketDir, err := os.MkdirTemp("", "reprise-etcd-") // apart from dir: the path of a socket may have 100 bytes
	if err != nil {
		return err
	}
	p.temporary = append(p.temporary, socketDir)
	socket := filepath.Join(socketDir, "etcd.sock")
	if err := p.startEtcd(ctx, assets.Etcd, socket, o.Fsync); err != nil {
		return err
	}
	admin, err := ca.Client(now, "reprise-admin", "system:masters")
	if err != nil {
		return err
	}
	if err := p.startAPIServer(ctx, assets.APIServer, socket, ca, admin, o.APIServerArgs); err != nil {
		return err
	}
	if err := installCRDs(p.config, o.CRDDirs); err != nil {
		return err
	}
	if o.ControllerManager {
		if err := p.startControllerManager(ctx, assets.ControllerManager, o.Controllers); err != nil {
			return err
		}
	}
	for _, child := range p.processes {
		p.watch(child)
	}
	return nil
}

func (p *Plane) makeDirs(dir string) error {
	if dir == "" {
		made, err := os.MkdirTemp("", "reprise-controlplane-")
		if err != nil {
			return err
		}
		p.temporary = append(p.temporary, made)
		p.dir = made
		return nil
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	p.dir = absolute
	return os.MkdirAll(absolute, 0o700)
}

// writeSecrets makes a new authority and the files of the API server. They are new at every start: the only clients are
// those that read the new kubeconfig.
func (p *Plane) writeSecrets(now time.Time) (*Authority, error) {
	ca, err := NewAuthority(now)
	if err != nil {
		return nil, err
	}
	server, err := ca.Server(now)
	if err != nil {
		return nil, err
	}
	signer, err := NewSigningKey()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{caFile: ca.Cert, serverCertFile: server.Cert, serverKeyFile: server.Key, signerKeyFile: signer}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(p.dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return ca, nil
}

func (p *Plane) startEtcd(ctx context.Context, path, socket string, fsync bool) error {
	_, err := p.run(ctx, Program{etcd, path, EtcdFlags(p.dir, socket, fsync), func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return err
		}
		return connection.Close()
	}})
	return err
}

// startAPIServer chooses a free port. Between the choice and the use somebody else may take it, hence the attempts.
func (p *Plane) startAPIServer(ctx context.Context, path, socket string, ca *Authority, admin Pair, more []string) error {
	for attempt := 1; ; attempt++ {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		if err := p.use(ClientConfig(fmt.Sprintf("https://127.0.0.1:%d", port), ca, admin)); err != nil {
			return err
		}
		child, err := p.run(ctx, Program{kubeAPIServer, path, apiServerFlags(p.dir, socket, port, more), p.get("/readyz")})
		if err == nil || child == nil || attempt == portAttempts || !child.portTaken() {
			return err
		}
		p.forget()
	}
}

// startControllerManager returns when a controller has shown that it works: the account it makes in every namespace.
func (p *Plane) startControllerManager(ctx context.Context, path string, more []string) error {
	ready := p.get("/api/v1/namespaces/default/serviceaccounts/default")
	_, err := p.run(ctx, Program{controllerManager, path, controllerManagerFlags(p.kubeconfig, more), ready})
	return err
}

// get returns a test that passes when the API server answers the path with success.
func (p *Plane) get(path string) func(context.Context) error {
	client, err := rest.UnversionedRESTClientFor(rawConfig(p.config))
	if err != nil {
		return func(context.Context) error { return err }
	}
	return func(ctx context.Context) error { return client.Get().AbsPath(path).Do(ctx).Error() }
}

// waitFor returns when the child passes the test, or says why it never will.
func waitFor(ctx context.Context, child *process, test func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		err := test(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-child.done:
			return child.died()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; its last words:\n%s", child.name, errors.Join(ctx.Err(), err), child.lastWords())
		case <-ticker.C:
		}
	}
}

// freePort lets the kernel choose a port of loopback that nobody uses now.
func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	err = listener.Close()
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		return address.Port, err
	}
	return 0, errors.Join(err, fmt.Errorf("%s has no port", listener.Addr()))
}
