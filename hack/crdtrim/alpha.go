// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"regexp"
)

// field is a property of the embedded template and the property right above it.
type field struct {
	parent, name string
}

func (f field) String() string { return f.parent + "." + f.name }

func (f field) compare(other field) int { return cmp.Compare(f.String(), other.String()) }

// alphaFields are the fields whose feature gate is alpha, and off, in Kubernetes 1.37 (its pkg/features/kube_features.go).
// The API types mark them by +featureGate, which does not reach a CRD, and their texts lag behind the gates, so neither
// can decide; the values are the gates, for whoever moves to the next release.
var alphaFields = map[field]string{
	{"spec", "scheduling"}:               "WorkloadWithJob, alpha since 1.36; its rules make it immutable too",
	{"spec", "evictionResponders"}:       "EvictionRequestAPI, alpha since 1.37",
	{"emptyDir", "mode"}:                 "EmptyDirVolumeMode, alpha since 1.37",
	{"volumeMounts", "bindMountOptions"}: "VolumeBindMountOptions, alpha since 1.37",
	{"httpGet", "protocol"}:              "H2CContainerProbe, alpha since 1.37",
	{"grpc", "mode"}:                     "GRPCContainerProbeTLS, alpha since 1.37",
	{"lifecycle", "stopSignal"}:          "ContainerStopSignals, alpha since 1.33",
	{"dataSourceRef", "namespace"}:       "CrossNamespaceVolumeDataSource, alpha since 1.26",
	{"configMap", "defaultUser"}:         userFields,
	{"secret", "defaultUser"}:            userFields,
	{"downwardAPI", "defaultUser"}:       userFields,
	{"projected", "defaultUser"}:         userFields,
	{"items", "user"}:                    userFields,
	{"serviceAccountToken", "user"}:      userFields,
	{"clusterTrustBundle", "user"}:       userFields,
	{"podCertificate", "user"}:           userFields,
}

const userFields = "AtomicWriteVolumeUserFields, alpha since 1.37"

// graduated are the fields that stay although their text speaks of alpha, with the reason.
var graduated = map[field]string{
	{"spec", "resources"}:                           "PodLevelResources is beta and on since 1.34",
	{"sources", "clusterTrustBundle"}:               "ClusterTrustBundleProjection is generally available since 1.37",
	{"securityContext", "supplementalGroupsPolicy"}: "SupplementalGroupsPolicy is generally available since 1.35",
	{"fileKeyRef", "key"}:                           "EnvFiles is beta and on since 1.35; the text is about its first release",
	{"spec", "dataSourceRef"}:                       "only its namespace is alpha",
}

var saysAlpha = regexp.MustCompile(`(?i)\balpha\b`)
