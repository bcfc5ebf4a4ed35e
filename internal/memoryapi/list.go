// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// page is the answer to a list.
type page struct {
	records   []*record
	rv        int64
	more      string
	remaining *int64
}

// token is where a list goes on.
type token struct {
	RV    int64
	After types.NamespacedName
}

// List reads the objects that are selected, in the order of their keys.
func (c *memoryClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	k, err := c.kindOfList(list)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	var got *page
	return c.send(ctx, Request{Verb: "list", Resource: k.resource, Key: types.NamespacedName{Namespace: options.Namespace}},
		func() (*record, error) {
			found, err := c.server.list(k, options)
			got = found
			return nil, err
		},
		func(*record) error { return k.answerList(got, list) })
}

// kindOfList finds the kind of the items of a list.
func (c *memoryClient) kindOfList(list client.ObjectList) (*kind, error) {
	gvk, err := c.GroupVersionKindFor(list)
	if err != nil {
		return nil, err
	}
	const suffix = "List"
	if n := len(gvk.Kind) - len(suffix); n > 0 && gvk.Kind[n:] == suffix {
		gvk.Kind = gvk.Kind[:n]
	}
	k, ok := c.server.kinds[gvk]
	if !ok {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return k, nil
}

// list selects a page of objects.
func (s *Server) list(k *kind, o *client.ListOptions) (*page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := token{RV: s.rv}
	if o.Continue != "" {
		var err error
		if from, err = parseToken(o.Continue); err != nil {
			return nil, err
		}
	}
	records := s.storage[k].records
	if from.RV != s.rv {
		records = s.storage[k].at(from.RV)
	}
	selected, err := k.selected(records, o, from.After)
	if err != nil {
		return nil, err
	}
	p := &page{records: selected, rv: from.RV}
	if o.Limit <= 0 || int64(len(selected)) < o.Limit {
		return p, nil
	}
	// A full page has a next one if anything comes after it, selected or not.
	p.records = selected[:o.Limit]
	last := p.records[o.Limit-1].key
	rest := int64(0)
	for key := range records {
		if inScope(k, o, key) && compareKeys(key, last) > 0 {
			rest++
		}
	}
	if rest > 0 {
		p.more = token{RV: from.RV, After: last}.String()
		if everything(o) {
			p.remaining = &rest
		}
	}
	return p, nil
}

func inScope(k *kind, o *client.ListOptions, key types.NamespacedName) bool {
	return !k.namespaced || o.Namespace == "" || key.Namespace == o.Namespace
}

// everything says that nothing is selected by label or field. Only then the server counts what remains.
func everything(o *client.ListOptions) bool {
	return (o.LabelSelector == nil || o.LabelSelector.Empty()) && (o.FieldSelector == nil || o.FieldSelector.Empty())
}

// selected returns those of the records that the options select, after a key.
func (k *kind) selected(records map[types.NamespacedName]*record, o *client.ListOptions, after types.NamespacedName) ([]*record, error) {
	byLabel, byField := o.LabelSelector, o.FieldSelector
	if byLabel == nil {
		byLabel = labels.Everything()
	}
	if byField == nil {
		byField = fields.Everything()
	}
	if err := k.offers(byField); err != nil {
		return nil, err
	}
	var found []*record
	for key, r := range records {
		if !inScope(k, o, key) || compareKeys(key, after) <= 0 {
			continue
		}
		if !byLabel.Matches(labels.Set(r.object.GetLabels())) {
			continue
		}
		if !byField.Empty() {
			set, err := k.fields(r.object)
			if err != nil {
				return nil, apierrors.NewInternalError(err)
			}
			if !byField.Matches(set) {
				continue
			}
		}
		found = append(found, r)
	}
	slices.SortFunc(found, func(a, b *record) int { return compareKeys(a.key, b.key) })
	return found, nil
}

// offers refuses fields that cannot be selected by.
func (k *kind) offers(by fields.Selector) error {
	if by.Empty() {
		return nil
	}
	for _, r := range by.Requirements() {
		if !k.selectable.Has(r.Field) {
			return apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	return nil
}

// String is the token as clients see it.
func (t token) String() string {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseToken(text string) (token, error) {
	var t token
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return t, apierrors.NewBadRequest("continue key is not valid")
	}
	return t, nil
}

// answerList writes a page into the caller's list.
func (k *kind) answerList(p *page, list client.ObjectList) error {
	if err := k.answerItems(p.records, list); err != nil {
		return err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	accessor.SetResourceVersion(strconv.FormatInt(p.rv, 10))
	accessor.SetContinue(p.more)
	accessor.SetRemainingItemCount(p.remaining)
	return nil
}

// answerItems writes records into the items of the caller's list.
func (k *kind) answerItems(records []*record, list client.ObjectList) error {
	if u, ok := list.(*unstructured.UnstructuredList); ok {
		u.Items = make([]unstructured.Unstructured, len(records))
		for i, r := range records {
			if err := k.answer(r, &u.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var items []runtime.Object
	for _, r := range records {
		item := copyOf(r.typed)
		if k.custom {
			// Items keep their type, but for those of built-in kinds, which are sent in another format.
			item.GetObjectKind().SetGroupVersionKind(k.gvk)
		}
		items = append(items, item)
	}
	if err := meta.SetList(list, items); err != nil || len(items) > 0 || k.custom {
		return err
	}
	// That format knows no empty lists.
	slice, err := meta.GetItemsPtr(list)
	if err == nil {
		reflect.ValueOf(slice).Elem().SetZero()
	}
	return err
}

// deleteAll asks every object that is selected to go.
func (s *Server) deleteAll(k *kind, which *client.ListOptions, o *metav1.DeleteOptions) error {
	found, err := s.list(k, which)
	if err != nil {
		return err
	}
	for _, r := range found.records {
		if err := s.delete(k, r.key, o.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
