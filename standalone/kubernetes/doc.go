// Package kubernetes reads the manifests of deploy/kubernetes strictly: each object
// into its type of k8s.io/api, KEDA's into a struct of the fields that they use. An
// unknown field, a name of another case or a key that is there twice is an error.
//
// Its tests hold the manifests against the product's own settings, ports and grace
// times; package e2e replaces processes as they order it. No cluster is started, and
// kustomize does not run: Load understands what the manifests use of it.
package kubernetes
