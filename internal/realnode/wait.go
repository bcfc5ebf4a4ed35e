// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	// readyTimeout bounds each wait of a start. It takes seconds; a machine may be busy.
	readyTimeout = 2 * time.Minute
	readyPoll    = 100 * time.Millisecond
)

// listens returns a test that passes when something accepts connections.
func listens(network, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return err
		}
		return connection.Close()
	}
}

// get returns a test that passes when the API server answers the path with success.
func (n *Node) get(path string) func(context.Context) error {
	client, err := kubernetes.NewForConfig(n.Config())
	return func(ctx context.Context) error {
		if err != nil {
			return err
		}
		return client.RESTClient().Get().AbsPath(path).Do(ctx).Error()
	}
}

// eventually returns when a test passes; what says what is wrong while it does not.
func (n *Node) eventually(ctx context.Context, what string, test func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := test(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-n.Ended():
			return errors.Join(n.Err(), err)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		case <-ticker.C:
		}
	}
}
