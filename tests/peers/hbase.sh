#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real Apache HBase 2.6.1, standalone, from Maven Central: the reference of tests and benchmarks.
#   hbase.sh start [DIR]   start HBase on loopback and wait until it is ready (DIR: default ${TMPDIR:-/tmp}/hbase-peer)
#   hbase.sh stop  [DIR]   stop the HBase started from DIR and wait until its process has ended
#   hbase.sh run   [DIR] CLASS ARGS…   run a class of HBase against it (PerformanceEvaluation, HFilePrettyPrinter …)
#   hbase.sh shell [DIR] [FILE]        the official HBase shell (2.4.17, the newest on the registry) against it; FILE: non-interactive
#   hbase.sh official ZOOKEEPER ARGS…  the official shell of HBase 2.6 on 2.6.1's jars, on any cluster: OFFICIAL="tests/peers/hbase.sh official" of
#       own_shell.py and bench/shell.py. RUBY=DIR: hbase-shell/src/main/ruby of a checkout of branch-2.6
#   hbase.sh hbtop [DIR] ARGS…         HBase's hbtop against it
#   hbase.sh classpath     print the class path
#   hbase.sh prepare       fetch what the other verbs need
# Ports: ZK_PORT (2181), MASTER_PORT (16000), RS_PORT (16020); web pages on +10. HEAP (2g), EXTRA (more XML properties). Needs Java 17 and Maven.
# BRIEF=1 is for JVMs that run for a minute or two, as those of tests do: the C1 compiler alone and the serial collector take half
# the processor time (always used for shell and hbtop). Benchmarks measure the JVM as it is.
# SNAPPY, LZ4, LZO, ZSTD come from hbase-compression-aircompressor (Hadoop 2.10 has no native libraries here).
set -euo pipefail
verb=${1:?start, stop, run, shell, official, hbtop, classpath or prepare}; shift
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hbase-peer
ZK_PORT=${ZK_PORT:-2181} MASTER_PORT=${MASTER_PORT:-16000} RS_PORT=${RS_PORT:-16020} HEAP=${HEAP:-2g}
opens=(); for m in java.lang java.nio sun.nio.ch java.util java.util.concurrent java.lang.reflect java.net java.math java.text java.io; do
  opens+=(--add-opens "java.base/$m=ALL-UNNAMED"); done
opens+=(--add-exports java.base/jdk.internal.misc=ALL-UNNAMED)
brief=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC)
jvm=("${opens[@]}"); [ "${BRIEF:-}" != 1 ] || jvm+=("${brief[@]}")

resolve() { # resolve NAME ARTIFACT… : a class path file from Maven, made once
  local name=$1; shift; mkdir -p "$cache/$name"
  [ -s "$cache/$name/cp" ] && return
  { echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>peer</groupId><artifactId>peer</artifactId><version>1</version><dependencies>'
    local a g n v t; for a in "$@"; do IFS=: read -r g n v t <<<"$a"
      echo "<dependency><groupId>$g</groupId><artifactId>$n</artifactId><version>$v</version>${t:+<type>$t</type>}"
      case $n in hbase-it|hbase-hbtop) echo '<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>' ;; esac
      echo '</dependency>'; done
    echo '</dependencies></project>'; } >"$cache/$name/pom.xml"
  # Uses Maven's cache if it is complete, so that later starts need no network.
  local goal=org.apache.maven.plugins:maven-dependency-plugin:2.8:build-classpath
  mvn -o -q -B -f "$cache/$name/pom.xml" $goal -Dmdep.outputFile="$cache/$name/cp" >/dev/null 2>&1 \
    || mvn -q -B -f "$cache/$name/pom.xml" $goal -Dmdep.outputFile="$cache/$name/cp" >&2
}
server_cp() { local g=org.apache.hbase v=2.6.1
  resolve server-3 $g:hbase-server:$v $g:hbase-server:$v:test-jar $g:hbase-mapreduce:$v $g:hbase-mapreduce:$v:test-jar \
    $g:hbase-it:$v:test-jar $g:hbase-common:$v:test-jar $g:hbase-client:$v:test-jar $g:hbase-zookeeper:$v:test-jar \
    $g:hbase-thrift:$v $g:hbase-rest:$v $g:hbase-endpoint:$v $g:hbase-rsgroup:$v $g:hbase-compression-aircompressor:$v junit:junit:4.13.2; cat "$cache/server-3/cp"; }
# Dependencies of LoadTestTool that the test jars lack.
tools_cp() { local l=org.apache.logging.log4j v=2.17.2; resolve tools $l:log4j-api:$v $l:log4j-core:$v; cat "$cache/tools/cp"; }
shell_cp() { resolve shell org.apache.hbase:hbase-shell:2.4.17; cat "$cache/shell/cp"
  [ -d "$cache/shell/jar" ] || unzip -q "$(tr ':' '\n' <"$cache/shell/cp" | grep '/hbase-shell-')" -d "$cache/shell/jar"; }
# The registry has no newer jar with the shell's Ruby; the JRuby is the one of HBase 2.6.1.
official_cp() { local g=org.apache.hbase v=2.6.1 l=org.apache.logging.log4j
  resolve official $g:hbase-server:$v $g:hbase-rsgroup:$v $g:hbase-logging:$v $l:log4j-api:2.17.2 $l:log4j-core:2.17.2 org.jruby:jruby-complete:9.3.13.0
  cat "$cache/official/cp"; }
# Not its shaded client, but the client that the others use, too.
hbtop_cp() { local g=org.apache.hbase v=2.6.1; resolve hbtop $g:hbase-hbtop:$v $g:hbase-client:$v; cat "$cache/hbtop/cp"; }
property() { echo "<property><name>$1</name><value>$2</value></property>"; }
configure() { mkdir -p "$1/conf"
  { echo '<configuration>'
    property hbase.rootdir "file://$1/data"; property hbase.zookeeper.property.dataDir "$1/zk"
    property hbase.unsafe.stream.capability.enforce false; property hbase.wal.provider filesystem
    property hbase.cluster.distributed false; property hbase.zookeeper.quorum 127.0.0.1
    property hbase.zookeeper.property.clientPort "$ZK_PORT"
    property hbase.master.hostname localhost; property hbase.regionserver.hostname localhost
    property hbase.master.ipc.address 127.0.0.1; property hbase.regionserver.ipc.address 127.0.0.1
    # There is one region server. For others the master would wait 4.5 s.
    property hbase.master.wait.on.regionservers.maxtostart 1
    # HBase gives up after 5 and 3 minutes, which a busy machine may need.
    property hbase.master.start.timeout.localHBaseCluster 1800000; property hbase.master.init.timeout.localHBaseCluster 1800000
    property hbase.master.port "$MASTER_PORT"; property hbase.regionserver.port "$RS_PORT"
    property hbase.master.info.port $((MASTER_PORT + 10)); property hbase.regionserver.info.port $((RS_PORT + 10))
    property hbase.master.info.bindAddress 127.0.0.1; property hbase.regionserver.info.bindAddress 127.0.0.1
    local c; for c in Snappy Lz4 Lzo Zstd; do property hbase.io.compress.${c,,}.codec org.apache.hadoop.hbase.io.compress.aircompressor.${c}Codec; done
    echo "${EXTRA:-}"; echo '</configuration>'; } >"$1/conf/hbase-site.xml"
  printf '%s\n' 'log4j.rootLogger=WARN,c' 'log4j.appender.c=org.apache.log4j.ConsoleAppender' \
    'log4j.appender.c.layout=org.apache.log4j.PatternLayout' 'log4j.appender.c.layout.ConversionPattern=%d{ISO8601} %p [%t] %c{2}: %m%n' \
    'log4j.logger.org.apache.hadoop.hbase.master.HMaster=INFO' 'log4j.logger.org.apache.hadoop.hbase.PerformanceEvaluation=INFO' >"$1/conf/log4j.properties"; }
dir=${TMPDIR:-/tmp}/hbase-peer
case ${1:-} in /*) dir=$1; shift ;; esac

case $verb in
classpath) server_cp ;;
prepare) server_cp >/dev/null; tools_cp >/dev/null; shell_cp >/dev/null; hbtop_cp >/dev/null ;;
start)
  cp=$(server_cp); configure "$dir"
  java "${jvm[@]}" -Xmx"$HEAP" -cp "$dir/conf:$cp" org.apache.hadoop.hbase.master.HMaster start >"$dir/log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
  # A busy machine needs minutes for a JVM's start; after a kill -9 HBase also splits its logs first.
  for _ in $(seq 9000); do grep -q 'Master has completed initialization' "$dir/log" && { echo "HBase ready: zookeeper 127.0.0.1:$ZK_PORT"; exit 0; }
    kill -0 "$(cat "$dir/pid")" 2>/dev/null || break; sleep 0.2; done
  tail -n 20 "$dir/log" >&2; exit 1 ;;
stop) [ -f "$dir/pid" ] || exit 0; pid=$(cat "$dir/pid"); kill "$pid" 2>/dev/null
  # On a busy machine a clean stop takes a minute; a killed HBase would leave a folder that tests of clean folders refuse.
  for _ in $(seq 3000); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done; if kill -9 "$pid" 2>/dev/null; then echo 'killed after 300 s' >&2
    # A large process takes a moment to end; callers rely on its end.
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done; fi; rm -f "$dir/pid" ;;
run) cp=$(server_cp):$(tools_cp); [ -d "$dir/conf" ] || configure "$dir"; exec java "${jvm[@]}" -Xmx1g -cp "$dir/conf:$cp" "$@" ;;
shell) cp=$(shell_cp); [ -d "$dir/conf" ] || configure "$dir"
  # Without the path JRuby would load the system's libjffi-jni where that is installed, which is of another version: then it takes
  # every output for a terminal.
  exec java "${opens[@]}" "${brief[@]}" -Djava.library.path="$cache/none" -Xmx1g -cp "$dir/conf:$cp" org.jruby.Main -X+O "$cache/shell/jar/jar-bootstrap.rb" ${1:+-n} "$@" ;;
official) zk=${1:?the address of ZooKeeper}; shift; cp=$(official_cp); conf=$cache/official/conf-${zk//[^0-9A-Za-z]/-}
  ruby=${RUBY:?hbase-shell/src/main/ruby of a checkout of branch-2.6}
  # In a file: scripts make configurations of their own, which would not have a -D.
  mkdir -p "$conf"; { echo '<configuration>'; property hbase.zookeeper.quorum "$zk"; echo '</configuration>'; } >"$conf/hbase-site.xml"
  printf '%s\n' 'log4j.rootLogger=ERROR,c' 'log4j.appender.c=org.apache.log4j.ConsoleAppender' 'log4j.appender.c.target=System.err' \
    'log4j.appender.c.layout=org.apache.log4j.PatternLayout' >"$conf/log4j.properties"
  exec java "${jvm[@]}" -Djava.library.path="$cache/none" -Xmx1g -cp "$conf:$ruby:$cp" -Dhbase.ruby.sources="$ruby" org.jruby.Main -X+O \
    "$ruby/jar-bootstrap.rb" "$@" ;;
hbtop) cp=$(hbtop_cp); [ -d "$dir/conf" ] || configure "$dir"
  # Without the path JRuby would load the system's libjffi-jni where that is installed, which is of another version: then it takes
  # every output for a terminal.
  exec java "${opens[@]}" "${brief[@]}" -Djava.library.path="$cache/none" -Xmx1g -cp "$dir/conf:$cp" org.apache.hadoop.hbase.hbtop.HBTop "$@" ;;
*) echo "unknown verb: $verb" >&2; exit 2 ;;
esac
