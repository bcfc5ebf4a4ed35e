// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options of a server.
type Options struct {
	// Scheme knows the kinds, those of this project and those of Kubernetes. It must be set.
	Scheme *runtime.Scheme
	// CRDDir holds the custom resource definitions. Default: config/crd/bases of this repository.
	CRDDir string
	// Now is the server's clock. Default: time.Now.
	Now func() time.Time
}

// Server is the API server. It may be used by several goroutines.
type Server struct {
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	now    func() time.Time
	kinds  map[schema.GroupVersionKind]*kind
	// ordered are the kinds in a fixed order.
	ordered []*kind

	mu      sync.Mutex
	rv      int64
	uids    int64
	names   int64
	storage map[*kind]*table
}

// Event is one change of an object.
type Event struct {
	// RV is the resource version of the change; those of all kinds come from one counter.
	RV   int64
	Type watch.EventType
	// Object as it is after the change; after a deletion, as it was last, with the resource version of the deletion.
	Object client.Object
}

// table holds the objects of one kind.
type table struct {
	records map[types.NamespacedName]*record
	history []change
}

// change is an entry of the history: what a key holds from a resource version on.
type change struct {
	t watch.EventType
	*record
}

// at returns the records as they were at a resource version.
func (t *table) at(rv int64) map[types.NamespacedName]*record {
	then := map[types.NamespacedName]*record{}
	for _, c := range t.history {
		if c.rv > rv {
			break
		}
		if c.t == watch.Deleted {
			delete(then, c.key)
		} else {
			then[c.key] = c.record
		}
	}
	return then
}

// record is an object that is stored. Nothing of it is ever changed: a write puts another record in its place.
type record struct {
	key types.NamespacedName
	rv  int64
	// raw is what is stored, in the form in which it is validated.
	raw client.Object
	// object is raw as it is read: with the defaults that raw lacks.
	object client.Object
	// typed is object in the type of the scheme.
	typed client.Object
}

// New makes a server that holds the namespaces default and kube-system. It fails if the definitions cannot be read or the
// scheme lacks a kind.
func New(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	kinds, err := kindsOf(o.Scheme, o.CRDDir)
	if err != nil {
		return nil, err
	}
	s := &Server{
		scheme: o.Scheme, mapper: mapperOf(kinds), now: o.Now, ordered: kinds,
		kinds: map[schema.GroupVersionKind]*kind{}, storage: map[*kind]*table{},
	}
	for _, k := range kinds {
		s.kinds[k.gvk] = k
		s.storage[k] = &table{records: map[types.NamespacedName]*record{}}
	}
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.create(s.kinds[namespaceKind], types.NamespacedName{Name: name}, ns); err != nil {
			return nil, fmt.Errorf("making namespace %s: %w", name, err)
		}
	}
	return s, nil
}

// RV is the resource version of the last write.
func (s *Server) RV() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rv
}

// Events returns the changes of the objects of a kind after a resource version, oldest first. It panics if the kind is
// not served.
func (s *Server) Events(gvk schema.GroupVersionKind, after int64) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	history := s.tableOf(gvk).history
	from, _ := slices.BinarySearchFunc(history, after+1, func(c change, rv int64) int { return cmp.Compare(c.rv, rv) })
	events := make([]Event, 0, len(history)-from)
	for _, c := range history[from:] {
		events = append(events, Event{RV: c.rv, Type: c.t, Object: copyOf(c.record.typed)})
	}
	return events
}

// ListAt returns the objects of a kind as they were at a resource version, in the order of their keys. It panics if the kind
// is not served.
func (s *Server) ListAt(gvk schema.GroupVersionKind, rv int64) []client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	then := s.tableOf(gvk).at(rv)
	list := make([]client.Object, 0, len(then))
	for _, key := range sortedKeys(then) {
		list = append(list, copyOf(then[key].typed))
	}
	return list
}

func (s *Server) tableOf(gvk schema.GroupVersionKind) *table {
	k, ok := s.kinds[gvk]
	if !ok {
		panic(fmt.Sprintf("%s is not served", gvk))
	}
	return s.storage[k]
}

// copyOf is a deep copy.
func copyOf[T client.Object](o T) T {
	return as[T](o.DeepCopyObject())
}

// as is a value in the type that it must have: another one is a mistake of this package.
func as[T any](v any) T {
	typed, ok := v.(T)
	if !ok {
		panic(fmt.Sprintf("%T is no %T", v, typed))
	}
	return typed
}

// sortedKeys returns the keys in the order in which the storage of an API server has them.
func sortedKeys[V any](objects map[types.NamespacedName]V) []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(objects))
	for key := range objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b types.NamespacedName) int {
	if a.Namespace != b.Namespace {
		// The storage's key of "a-b/x" comes before that of "a/x": the slash sorts after the dash.
		return cmp.Compare(a.Namespace+"/", b.Namespace+"/")
	}
	return cmp.Compare(a.Name, b.Name)
}
