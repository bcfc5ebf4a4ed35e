// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mapper remembers the resource of each version of a kind. With --namespaces the cache asks for it at every read, and the library's
// own mapper looks through all that the API server has. What was not found is asked for again.
type mapper struct {
	meta.RESTMapper

	mu    sync.RWMutex
	known map[schema.GroupVersionKind]*meta.RESTMapping
}

func newMapper(restConfig *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	all, err := apiutil.NewDynamicRESTMapper(restConfig, httpClient)
	if err != nil {
		return nil, err
	}
	return remembering(all), nil
}

func remembering(all meta.RESTMapper) *mapper {
	return &mapper{RESTMapper: all, known: map[schema.GroupVersionKind]*meta.RESTMapping{}}
}

// RESTMapping returns the resource of a kind.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	key := kind.WithVersion(versions[0])
	m.mu.RLock()
	found := m.known[key]
	m.mu.RUnlock()
	if found != nil {
		return found, nil
	}
	found, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[key] = found
	return found, nil
}
