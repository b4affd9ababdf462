#!/usr/bin/env bash
# terraform apply, if somebody who may asked for what is about to be applied:
#
#   terraform-apply.sh KIND/NAME [-n NAMESPACE ...] [-- ARGUMENTS OF terraform apply]
#
# The exit code is Terraform's; or that of kubectl kausality allowed, which is 3 where it is not allowed.
set -euo pipefail

ask=()
while (($# > 0)) && [[ $1 != -- ]]; do
	ask+=("$1")
	shift
done
[[ ${1:-} != -- ]] || shift

kubectl kausality allowed "${ask[@]}" --action apply || exit
exec "${TERRAFORM:-terraform}" apply "$@"
