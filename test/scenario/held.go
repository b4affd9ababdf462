// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// quiet is how long nothing must happen to be taken as held.
const quiet = 5 * time.Second

// hold makes changes nobody may make, and one that is allowed beside them.
func (s *Scenario) hold(ctx context.Context) error {
	s.narrator.Sayf("anna is not in the platform team:")

	out, err := s.kubectl(ctx, anna, "patch", "databaseclaim", claimName, "--type=merge", "-p", `{"spec":{"size":"medium"}}`)
	if err != nil {
		return err
	}

	if err := mentions(out, "Warning", `"database-claim-to-xr"`, "anna@example.com", "platform-team"); err != nil {
		return err
	}

	if err := s.staysHeld(ctx, "medium"); err != nil {
		return err
	}

	s.narrator.Sayf("hans is, but takes the ticket away in the same write:")

	out, err = s.kubectl(ctx, hans, "patch", "databaseclaim", claimName, "--type=merge", "-p",
		`{"metadata":{"annotations":{"jira":null}},"spec":{"size":"small"}}`)
	if err != nil {
		return err
	}

	if err := mentions(out, "Warning", `"database-claim-to-xr"`, "jira"); err != nil {
		return err
	}

	if err := s.staysHeld(ctx, "small"); err != nil {
		return err
	}

	return s.besides(ctx)
}

// staysHeld checks that the Claim asks for a size that nothing below it gets,
// and that the Claim says so.
func (s *Scenario) staysHeld(ctx context.Context, asked string) error {
	says := func(ctx context.Context) error { return s.claimSays(ctx, asked) }
	if err := Eventually(ctx, "the Claim's word about what is held", says); err != nil {
		return err
	}

	if err := stays(ctx, quiet, "size large below the Claim", s.large); err != nil {
		return err
	}

	s.narrator.Sayf("The Claim asks for %s; XDatabase, Object and ConfigMap stay large, and the Claim says why:", asked)

	_, err := s.kubectl(ctx, anna, "get", "databaseclaim", claimName, "-o",
		`jsonpath={.status.conditions[?(@.type=="Kausality")].message}{"\n"}`)

	return err
}

func (s *Scenario) claimSays(ctx context.Context, asked string) error {
	claim, err := s.claim(ctx)
	if err != nil {
		return err
	}

	if err := want(claim, asked, "spec", "size"); err != nil {
		return err
	}

	c, ok := resource.ConditionOf(claim, v1alpha1.ConditionKausality)
	if !ok || c.True() || c.Reason != v1alpha1.ReasonHeld {
		return fmt.Errorf("the Claim's condition is %+v: %w", c, errOther)
	}

	return mentions(c.Message, "spec.size of XDatabase "+s.xr, "(large → "+asked+")")
}

// large checks that nothing below the Claim has changed its size.
func (s *Scenario) large(ctx context.Context) error {
	xr, err := s.composite(ctx)
	if err != nil {
		return err
	}

	if err := want(xr, "large", "spec", "size"); err != nil {
		return err
	}

	mr, err := s.managed(ctx)
	if err != nil {
		return err
	}

	if err := want(mr, "large", "spec", "forProvider", "manifest", "data", "size"); err != nil {
		return err
	}

	return s.data(ctx, "size", "large")
}

// besides makes an allowed change while another stays held, and then the held
// one with a ticket.
func (s *Scenario) besides(ctx context.Context) error {
	s.narrator.Sayf("An allowed change passes while the other one stays held:")

	if _, err := s.kubectl(ctx, hans, "patch", "databaseclaim", claimName, "--type=merge", "-p", `{"spec":{"backup":"daily"}}`); err != nil {
		return err
	}

	err := Eventually(ctx, "the allowed change outside", func(ctx context.Context) error {
		if err := s.data(ctx, "backup", "daily"); err != nil {
			return err
		}

		return s.settled(ctx)
	})
	if err != nil {
		return err
	}

	if err := s.large(ctx); err != nil {
		return err
	}

	// While anything is in progress the condition names nothing.
	says := func(ctx context.Context) error { return s.claimSays(ctx, "small") }
	if err := Eventually(ctx, "the Claim's word about what is held", says); err != nil {
		return err
	}

	if _, err := s.kubectl(ctx, anna, "get", "configmap", s.external.Name, "-o", `jsonpath={.data}{"\n"}`); err != nil {
		return err
	}

	s.narrator.Sayf("hans takes the change back, with the ticket in place, and nothing is held:")

	if _, err := s.kubectl(ctx, hans, "patch", "databaseclaim", claimName, "--type=merge", "-p",
		`{"metadata":{"annotations":{"jira":"`+ticket+`"}},"spec":{"size":"large"}}`); err != nil {
		return err
	}

	return Eventually(ctx, "a Claim with nothing held", func(ctx context.Context) error {
		claim, err := s.claim(ctx)
		if err != nil {
			return err
		}

		c, _ := resource.ConditionOf(claim, v1alpha1.ConditionKausality)
		if !c.True() || strings.Contains(c.Message, "held") {
			return fmt.Errorf("the Claim's condition is %+v: %w", c, errOther)
		}

		return s.settled(ctx)
	})
}
