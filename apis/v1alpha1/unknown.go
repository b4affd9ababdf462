// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "encoding/json"

// Unknown holds the fields of an annotation's entry that this version does not
// know, by name, as compact JSON. They are kept as they are, for a newer
// version may have written them. Package engine/allowance reads and writes
// them.
type Unknown map[string]json.RawMessage
