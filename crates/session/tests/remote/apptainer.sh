#!/bin/bash
# A stand-in for apptainer: refuses every argument that it does not expect, and runs commands for
# real, in a folder. STATE, set by the test, holds its instances. An "image" is a folder NAME.sif.d
# beside NAME.sif, with the work tree's content in it.
set -euo pipefail
fail() { echo "FATAL: stand-in: $*" >&2; echo "$*" >>"$STATE/complaints"; exit 255; }
: "${STATE:?}" "${PATH:?}"
[ -z "${LEAKED:-}" ] || fail "the environment of the caller leaked"

binds=()
take_binds() { # consumes --bind HOST:INSIDE pairs into binds; the rest goes to rest
  rest=()
  while [ $# -gt 0 ]; do
    if [ "$1" = --bind ]; then
      [ -d "${2%%:*}" ] || fail "bind of no folder: $2"
      binds+=("$2"); shift 2
    else rest=("$@"); return; fi
  done
}

case "${1:-} ${2:-}" in
"instance start")
  shift 2
  for wanted in --cleanenv --containall --writable-tmpfs; do
    [ "$1" = $wanted ] || fail "expected $wanted, got $1"; shift
  done
  take_binds "$@"; set -- "${rest[@]}"
  [ "$1" = --pwd ] || fail "expected --pwd, got $1"
  [ $# = 4 ] || fail "instance start ends with --pwd FOLDER SIF NAME"
  [ -f "$3" ] || fail "no image $3"
  [[ "$3" == *.sif ]] || fail "not a .sif: $3"
  [[ "$4" =~ ^gp-[0-9]{2,}$ ]] || fail "odd name $4"
  [ ! -e "$STATE/$4" ] || fail "instance $4 already exists"
  mkdir "$STATE/$4"
  printf '%s\n' "${binds[@]}" >"$STATE/$4/binds"
  ;;
"instance list")
  [ "$*" = "instance list --json" ] || fail "unexpected: $*"
  list=()
  for instance in "$STATE"/gp-*; do [ -d "$instance" ] && list+=("{\"instance\":\"${instance##*/}\",\"pid\":1}"); done
  (IFS=,; echo "{\"instances\":[${list[*]:-}]}")
  ;;
"instance stop")
  [ $# = 5 ] && [ "$3 $4" = "--timeout 5" ] || fail "unexpected: $*"
  [ -d "$STATE/$5" ] || fail "no instance $5"
  rm -r "${STATE:?}/$5"
  ;;
"exec --cleanenv")
  shift 2
  if [ "$1" = --containall ]; then
    shift; take_binds "$@"; set -- "${rest[@]}"
    [ -f "$1" ] || fail "no image $1"
    [ "$2 $3" = "cp -a" ] && [ $# = 5 ] || fail "only copies run in an image: $*"
    [ "${#binds[@]}" = 1 ] && [ "${binds[0]#*:}/" = "$5" ] || fail "copies to $5, not to the bound folder"
    [ -d "$1.d" ] || { echo "cp: cannot stat '$4'" >&2; exit 1; }
    exec cp -a "$1.d/." "${binds[0]%%:*}/"
  fi
  [ "$1" = --pwd ] || fail "expected --pwd, got $1"
  inside=$2; shift 2
  [[ "$1" == instance://gp-* ]] || fail "expected instance://, got $1"
  instance="$STATE/${1#instance://}"; shift
  [ -d "$instance" ] || fail "no instance found with name ${instance##*/}"
  [ "$1" = env ] || fail "expected env, got $1"
  folder= base_host= base_at=
  while IFS= read -r bound; do
    host=${bound%%:*} at=${bound#*:}
    case "$inside/" in "$at"/*) folder="$host${inside#"$at"}" base_host=$host base_at=$at ;; esac
  done <"$instance/binds"
  [ -n "$folder" ] || fail "$inside is not bound"
  cd "$folder" 2>/dev/null || { echo "FATAL: $inside: no such folder" >&2; exit 255; }
  # With ROOTS, a folder, the work tree is where the image says: in a root of its own over the host's.
  if [ -n "${ROOTS:-}" ]; then
    exec unshare --mount bash -euc '
      roots=$1 host=$2 at=$3 inside=$4; shift 4
      mount -t tmpfs none "$roots"; mkdir "$roots"/{over,work,root}
      mount -t overlay none -o "lowerdir=/,upperdir=$roots/over,workdir=$roots/work" "$roots/root"
      mkdir -p "$roots/root$at"; mount --bind "$host" "$roots/root$at"
      for folder in proc dev tmp; do mount --rbind "/$folder" "$roots/root/$folder"; done
      exec chroot "$roots/root" env -i --chdir="$inside" PATH="$PATH" HOME=/root "$@"
    ' bash "$ROOTS" "$base_host" "$base_at" "$inside" "$@"
  fi
  set +e
  env -i PATH="$PATH" HOME=/root "$@"
  exit $?
  ;;
*) fail "unexpected: $*" ;;
esac
