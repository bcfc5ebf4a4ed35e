// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conflictMessage is what a write of an old version is told.
const conflictMessage = "the object has been modified; please apply your changes to the latest version and try again"

func inNamespace(namespace string) context.Context {
	return genericapirequest.WithNamespace(context.Background(), namespace)
}

// create stores a new object and returns its record.
func (s *Server) create(k *kind, key types.NamespacedName, sent client.Object) (*record, error) {
	o, err := k.decode(sent)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.insert(k, key.Namespace, o)
}

// insert stores a new object. The lock is held.
func (s *Server) insert(k *kind, namespace string, o client.Object) (*record, error) {
	if o.GetResourceVersion() != "" {
		return nil, unexpected("resourceVersion should not be set on objects to be created")
	}
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(namespace, o); err != nil {
		return nil, err
	}
	if err := s.namespaceExists(k, namespace); err != nil {
		return nil, err
	}
	s.introduce(o)
	nameOwnersOnce(o)
	if err := rest.BeforeCreate(k.main, inNamespace(namespace), o); err != nil {
		return nil, err
	}
	if _, taken := s.storage[k].records[client.ObjectKeyFromObject(o)]; taken {
		return nil, apierrors.NewAlreadyExists(k.groupResource(), o.GetName())
	}
	return s.put(k, watch.Added, o)
}

// introduce gives a new object what the server says of every object.
func (s *Server) introduce(o client.Object) {
	o.SetManagedFields(nil)
	o.SetSelfLink("")
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetCreationTimestamp(s.time())
	s.uids++
	o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.uids)))
	if o.GetName() == "" && o.GetGenerateName() != "" {
		s.names++
		o.SetName(o.GetGenerateName() + nameSuffix(s.names))
	}
}

// nameOwnersOnce drops references to owners that are there already.
func nameOwnersOnce(o client.Object) {
	refs := o.GetOwnerReferences()
	var once []metav1.OwnerReference
	for _, ref := range refs {
		if !slices.ContainsFunc(once, func(r metav1.OwnerReference) bool { return apiequality.Semantic.DeepEqual(r, ref) }) {
			once = append(once, ref)
		}
	}
	if len(once) < len(refs) {
		o.SetOwnerReferences(once)
	}
}

// nameSuffix is the nth generated ending of a name: five characters, as a real one.
func nameSuffix(n int64) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	suffix := []byte("bbbbb")
	for i := len(suffix) - 1; i >= 0; i-- {
		suffix[i] = letters[n%int64(len(letters))]
		n /= int64(len(letters))
	}
	return string(suffix)
}

// time is now as objects have it, in whole seconds.
func (s *Server) time() metav1.Time {
	return s.after(0)
}

func (s *Server) namespaceExists(k *kind, namespace string) error {
	if !k.namespaced {
		return nil
	}
	namespaces := s.kinds[namespaceKind]
	if _, ok := s.storage[namespaces].records[types.NamespacedName{Name: namespace}]; !ok {
		return apierrors.NewNotFound(namespaces.groupResource(), namespace)
	}
	return nil
}

// put stores an object under the next resource version and tells of it. The lock is held.
func (s *Server) put(k *kind, t watch.EventType, o client.Object) (*record, error) {
	version := s.rv + 1
	o.SetManagedFields(nil)
	o.SetResourceVersion(strconv.FormatInt(version, 10))
	made := &record{key: client.ObjectKeyFromObject(o), rv: version, raw: o, object: o}
	if completed, more := k.complete(o); more {
		made.object = completed
	}
	var err error
	if made.typed, err = k.typed(made.object); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	s.rv = version
	table := s.storage[k]
	table.records[made.key] = made
	table.history = append(table.history, change{t: t, record: made})
	return made, nil
}

// remove takes an object out and tells of it. The lock is held.
func (s *Server) remove(k *kind, r *record) {
	s.rv++
	last := copyOf(r.typed)
	last.SetResourceVersion(strconv.FormatInt(s.rv, 10))
	table := s.storage[k]
	delete(table.records, r.key)
	table.history = append(table.history, change{t: watch.Deleted, record: &record{key: r.key, rv: s.rv, typed: last}})
}

// update stores the next version of an object, of the whole of it or of its status.
func (s *Server) update(k *kind, key types.NamespacedName, subresource string, sent client.Object) (*record, error) {
	rules, err := k.endpoint(key.Name, subresource)
	if err != nil {
		return nil, err
	}
	o, err := k.decode(sent)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace(k, rules, key, o)
}

// endpoint has the rules of the object itself or of a subresource.
func (k *kind) endpoint(name, subresource string) (rest.RESTUpdateStrategy, error) {
	switch {
	case subresource == "":
		return k.main, nil
	case subresource == "status" && k.status != nil:
		return k.status, nil
	}
	if k.custom {
		return nil, apierrors.NewNotFound(k.groupResource(), name)
	}
	return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{},
		Message: "the server could not find the requested resource",
	}}
}

// replace stores the next version of an object. The lock is held.
func (s *Server) replace(k *kind, rules rest.RESTUpdateStrategy, key types.NamespacedName, o client.Object) (*record, error) {
	if o.GetName() != key.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), key.Name))
	}
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(key.Namespace, o); err != nil {
		return nil, err
	}
	old, found := s.storage[k].records[key]
	if !found {
		if !rules.AllowCreateOnUpdate(context.Background()) {
			return nil, apierrors.NewNotFound(k.groupResource(), key.Name)
		}
		if uid := o.GetUID(); uid != "" {
			return nil, wrongUID(k, key.Name, uid, "")
		}
		o.SetResourceVersion("")
		return s.insert(k, key.Namespace, o)
	}
	if err := s.isCurrent(k, rules, o, old); err != nil {
		return nil, err
	}
	nameOwnersOnce(o)
	before := copyOf(old.object)
	if err := rest.BeforeUpdate(rules, inNamespace(key.Namespace), o, before); err != nil {
		return nil, err
	}
	if finished(o, old.object) {
		s.remove(k, old)
		return s.asRecord(k, o)
	}
	return s.store(k, o, old)
}

// store puts the next version of an object unless nothing has changed. The lock is held.
func (s *Server) store(k *kind, o client.Object, old *record) (*record, error) {
	o.SetManagedFields(nil)
	o.SetResourceVersion(old.raw.GetResourceVersion())
	if same(o, old.raw) {
		return old, nil
	}
	return s.put(k, watch.Modified, o)
}

// asRecord is an object that is not stored, to be answered with.
func (s *Server) asRecord(k *kind, o client.Object) (*record, error) {
	typed, err := k.typed(o)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &record{raw: o, object: o, typed: typed}, nil
}

func same(a, b client.Object) bool {
	if u, ok := a.(*unstructured.Unstructured); ok {
		return apiequality.Semantic.DeepEqual(u.Object, as[*unstructured.Unstructured](b).Object)
	}
	return apiequality.Semantic.DeepEqual(a, b)
}

// finished says that the last finalizer of an object that is being deleted has gone.
func finished(o, old client.Object) bool {
	grace := old.GetDeletionGracePeriodSeconds()
	return len(o.GetFinalizers()) == 0 && old.GetDeletionTimestamp() != nil && (grace == nil || *grace == 0)
}

// isCurrent checks that the sender knows the object that is there, and its latest version.
func (s *Server) isCurrent(k *kind, rules rest.RESTUpdateStrategy, o client.Object, old *record) error {
	if uid, is := o.GetUID(), old.object.GetUID(); uid != "" && uid != is {
		return wrongUID(k, o.GetName(), uid, is)
	}
	version, err := parseVersion(o.GetResourceVersion())
	if err != nil {
		return unexpected(err.Error())
	}
	switch {
	case version == 0 && rules.AllowUnconditionalUpdate(context.Background()):
		o.SetResourceVersion(old.object.GetResourceVersion())
		return nil
	case version == 0:
		return apierrors.NewInvalid(schema.GroupKind{Group: k.gvk.Group, Kind: k.resource}, o.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), version, "must be specified for an update")})
	case version != old.rv:
		return apierrors.NewConflict(k.groupResource(), o.GetName(), errors.New(conflictMessage))
	}
	return nil
}

// wrongUID is what a write of an object that is not there any more is told.
func wrongUID(k *kind, name string, sent, is types.UID) error {
	return apierrors.NewConflict(k.groupResource(), name, fmt.Errorf("the UID that was sent is %q, that of the object is %q", sent, is))
}

// unexpected is an error that the API server has no word for.
func unexpected(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}}
}

func parseVersion(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	return strconv.ParseInt(version, 10, 64)
}
