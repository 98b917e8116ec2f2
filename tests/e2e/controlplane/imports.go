//go:build controlplane

// Package controlplane pins the programs of a Kubernetes control plane as
// dependencies of this module, so that `go build` can make them by import path.
// The build tag keeps the file out of every build: main packages cannot be
// linked in, but `go mod tidy` reads imports under all tags.
package controlplane

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
