// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remote is a process's connection to the API server: everything is a request on the network. Reads are live.
type remote struct {
	client.Client // the server itself
	process       *process
}

// key tells what is asked, by whom, for what.
func (c *remote) key(ctx context.Context, verb string, o runtime.Object, name string) string {
	return verb + " " + c.process.sim.kindOf(o) + " " + name + c.by(ctx)
}

// by tells which reconcile asks, by the values of its logger.
func (c *remote) by(ctx context.Context) string {
	log, err := logr.FromContext(ctx)
	if err != nil {
		return ""
	}
	if s, ok := log.GetSink().(*sink); ok && s.who != "" {
		return " by " + s.who
	}
	return ""
}

func nameOf(o client.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// Get reads live.
func (c *remote) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	got := blank(out)
	err := c.process.ask(ctx, c.key(ctx, "get", out, key.String()), false, nil, nil, func() error {
		return c.Client.Get(context.Background(), key, got, opts...)
	})
	return adopt(out, got, err)
}

// List reads live.
func (c *remote) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	which := o.Namespace
	if o.FieldSelector != nil {
		which += " " + o.FieldSelector.String()
	}
	if o.LabelSelector != nil {
		which += " " + o.LabelSelector.String()
	}
	got := blank(out)
	err := c.process.ask(ctx, c.key(ctx, "list", out, which), false, nil, nil, func() error {
		return c.Client.List(context.Background(), got, opts...)
	})
	return adopt(out, got, err)
}

// Create creates.
func (c *remote) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.write(ctx, "create", o, false, func(o client.Object) error { return c.Client.Create(context.Background(), o, opts...) })
}

// Update updates.
func (c *remote) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.write(ctx, "update", o, true, func(o client.Object) error { return c.Client.Update(context.Background(), o, opts...) })
}

// Delete deletes.
func (c *remote) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.write(ctx, "delete", o, false, func(o client.Object) error { return c.Client.Delete(context.Background(), o, opts...) })
}

// Patch patches.
func (c *remote) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	fixed := client.RawPatch(patch.Type(), data)
	return c.write(ctx, "patch", o, true, func(o client.Object) error { return c.Client.Patch(context.Background(), o, fixed, opts...) })
}

// write sends what the object is now; what becomes of it is shown in the object with the answer.
func (c *remote) write(ctx context.Context, verb string, o client.Object, update bool, do func(client.Object) error) error {
	sent, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", o)
	}
	var changes, makes client.Object
	switch {
	case update:
		changes = sent
	case verb == "create":
		makes = sent
	}
	err := c.process.ask(ctx, c.key(ctx, verb, o, nameOf(o)), true, changes, makes, func() error { return do(sent) })
	return adopt(o, sent, err)
}

// Status writes status.
func (c *remote) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource writes a subresource.
func (c *remote) SubResource(name string) client.SubResourceClient {
	return &remoteSub{SubResourceClient: c.Client.SubResource(name), remote: c, name: name}
}

type remoteSub struct {
	client.SubResourceClient
	remote *remote
	name   string
}

// Update updates the subresource.
func (c *remoteSub) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return c.remote.write(ctx, "update/"+c.name, o, true, func(o client.Object) error {
		return c.SubResourceClient.Update(context.Background(), o, opts...)
	})
}

// Patch patches the subresource.
func (c *remoteSub) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	fixed := client.RawPatch(patch.Type(), data)
	return c.remote.write(ctx, "patch/"+c.name, o, true, func(o client.Object) error {
		return c.SubResourceClient.Patch(context.Background(), o, fixed, opts...)
	})
}

// blank returns a new object of the same type.
func blank[T any](like T) T {
	made, _ := reflect.New(reflect.TypeOf(like).Elem()).Interface().(T)
	return made
}

// adopt shows an answer in what the caller gave, unless there was none.
func adopt(out, got any, err error) error {
	if err == nil {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(got).Elem())
	}
	return err
}

// cached reads from the process's cache and writes to the API server.
type cached struct {
	*remote
	cache *informers
}

// Get reads from the cache.
func (c *cached) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	return c.cache.Get(ctx, key, out, opts...)
}

// List reads from the cache.
func (c *cached) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	return c.cache.List(ctx, out, opts...)
}
