// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Request is one request of a client.
type Request struct {
	// Verb is get, list, create, update, patch, delete or deletecollection.
	Verb string
	// Resource is the plural name of the kind, in lower case.
	Resource string
	// Subresource is status or empty.
	Subresource string
	// Key names the object; of a list, and of a creation with a generated name, only the namespace is known.
	Key types.NamespacedName
	// Object is what is sent: the object to write, or that to delete. It is a copy, and nil of reads. It must not be changed.
	Object client.Object
	// Write is set of everything but get and list.
	Write bool
}

// Transport carries requests to the server. It calls do, which carries out the request and returns the server's answer, at
// most once: before it returns, after it has returned (the request was late), or never. What it returns is what the client
// sees; the client takes over the answer's object only if that is nil, and then do must have been called before.
type Transport func(ctx context.Context, r Request, do func() error) error

// Client returns a client whose requests, reads included, are carried to the server by t; nil: directly.
func (s *Server) Client(t Transport) client.Client {
	if t == nil {
		t = func(_ context.Context, _ Request, do func() error) error { return do() }
	}
	return &memoryClient{server: s, carry: t}
}

// memoryClient is a client of one server.
type memoryClient struct {
	server *Server
	carry  Transport
}

var errUnanswered = errors.New("the transport reported an answer to a request that was not carried out")

// send has the request carried out and hands the answer to take.
func (c *memoryClient) send(ctx context.Context, r Request, do func() (*record, error), take func(*record) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var answer *record
	answered := false
	err := c.carry(ctx, r, func() error {
		got, err := do()
		if err != nil {
			return err
		}
		answer, answered = got, true
		return nil
	})
	if err != nil {
		return err
	}
	if !answered {
		return errUnanswered
	}
	return take(answer)
}

// kindOf finds the kind of an object and checks the key as clients do before they send anything.
func (c *memoryClient) kindOf(o runtime.Object) (*kind, error) {
	gvk, err := apiutil.GVKForObject(o, c.server.scheme)
	if err != nil {
		return nil, err
	}
	k, ok := c.server.kinds[gvk]
	if !ok {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return k, nil
}

// addressed is kindOf for requests that name an object.
func (c *memoryClient) addressed(o runtime.Object, key types.NamespacedName) (*kind, types.NamespacedName, error) {
	k, err := c.kindOf(o)
	if err != nil {
		return nil, key, err
	}
	if !k.namespaced {
		key.Namespace = ""
	} else if key.Namespace == "" {
		return nil, key, errors.New("an empty namespace may not be set when a resource name is provided")
	}
	if key.Name == "" {
		return nil, key, errors.New("resource name may not be empty")
	}
	return k, key, nil
}

// Get reads an object.
func (c *memoryClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	k, key, err := c.addressed(o, key)
	if err != nil {
		return err
	}
	return c.send(ctx, Request{Verb: "get", Resource: k.resource, Key: key},
		func() (*record, error) { return c.server.get(k, key) },
		func(r *record) error { return k.answer(r, o) })
}

// Create stores a new object.
func (c *memoryClient) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	k, err := c.kindOf(o)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Name: o.GetName()}
	if k.namespaced {
		key.Namespace = o.GetNamespace()
		if key.Namespace == "" {
			return errors.New("an empty namespace may not be set during creation")
		}
	}
	sent := copyOf(o)
	return c.send(ctx, Request{Verb: "create", Resource: k.resource, Key: key, Object: sent, Write: true},
		func() (*record, error) { return c.server.create(k, key, sent) },
		func(r *record) error { return k.answer(r, o) })
}

// Update stores the next version of an object.
func (c *memoryClient) Update(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
	return c.put(ctx, o, "")
}

func (c *memoryClient) put(ctx context.Context, o client.Object, subresource string) error {
	k, key, err := c.addressed(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	sent := copyOf(o)
	return c.send(ctx, Request{Verb: "update", Resource: k.resource, Subresource: subresource, Key: key, Object: sent, Write: true},
		func() (*record, error) { return c.server.update(k, key, subresource, sent) },
		func(r *record) error { return k.keepType(r, o) })
}

// Patch changes an object.
func (c *memoryClient) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	return c.patch(ctx, o, p, "")
}

func (c *memoryClient) patch(ctx context.Context, o client.Object, p client.Patch, subresource string) error {
	k, key, err := c.addressed(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	return c.send(ctx, Request{Verb: "patch", Resource: k.resource, Subresource: subresource, Key: key, Object: copyOf(o), Write: true},
		func() (*record, error) { return c.server.patch(k, key, subresource, p.Type(), data) },
		func(r *record) error { return k.keepType(r, o) })
}

// Delete asks an object to go.
func (c *memoryClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	k, key, err := c.addressed(o, client.ObjectKeyFromObject(o))
	if err != nil {
		return err
	}
	options := (&client.DeleteOptions{}).ApplyOptions(opts).AsDeleteOptions().DeepCopy()
	return c.send(ctx, Request{Verb: "delete", Resource: k.resource, Key: key, Object: copyOf(o), Write: true},
		func() (*record, error) { return nil, c.server.delete(k, key, options) },
		func(*record) error { return nil })
}

// DeleteAllOf asks the objects that are selected to go.
func (c *memoryClient) DeleteAllOf(ctx context.Context, o client.Object, opts ...client.DeleteAllOfOption) error {
	k, err := c.kindOf(o)
	if err != nil {
		return err
	}
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	which, how := options.ListOptions, options.AsDeleteOptions().DeepCopy()
	return c.send(ctx, Request{Verb: "deletecollection", Resource: k.resource, Key: types.NamespacedName{Namespace: which.Namespace}, Write: true},
		func() (*record, error) { return nil, c.server.deleteAll(k, &which, how) },
		func(*record) error { return nil })
}

// Apply is not served: the product does not use it.
func (c *memoryClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errors.New("server-side apply is not served")
}

// Scheme knows the kinds.
func (c *memoryClient) Scheme() *runtime.Scheme { return c.server.scheme }

// RESTMapper knows the resources that are served.
func (c *memoryClient) RESTMapper() meta.RESTMapper { return c.server.mapper }

// GroupVersionKindFor returns the kind of an object.
func (c *memoryClient) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, c.server.scheme)
}

// IsObjectNamespaced says whether objects of this kind have a namespace.
func (c *memoryClient) IsObjectNamespaced(o runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(o, c.server.scheme, c.server.mapper)
}

// Status writes the status subresource.
func (c *memoryClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource writes a subresource.
func (c *memoryClient) SubResource(name string) client.SubResourceClient {
	return &subresource{memoryClient: c, name: name}
}

// subresource is a client of one subresource.
type subresource struct {
	*memoryClient
	name string
}

func (c *subresource) unserved() error {
	return fmt.Errorf("this use of the subresource %s is not served", c.name)
}

// Get is not served: the product does not use it.
func (c *subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return c.unserved()
}

// Create is not served: the product does not use it.
func (c *subresource) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return c.unserved()
}

// Apply is not served: the product does not use it.
func (c *subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return c.unserved()
}

// Update stores the next version of the subresource.
func (c *subresource) Update(ctx context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return c.put(ctx, o, c.name)
}

// Patch changes the subresource.
func (c *subresource) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	return c.patch(ctx, o, p, c.name)
}
