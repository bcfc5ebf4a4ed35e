// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)
func TestX(t *testing.T) { _ = fmt.Sprint(math.MaxInt32, json.Valid, apiextensionsv1.JSONSchemaProps{}, apiextensions.JSONSchemaProps{}, validation.NewSchemaValidator); var _ client.Object = &batchv1alpha1.JobRun{} }
