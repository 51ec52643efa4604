// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.suite;

import static rorqual.tests.client26.Text.put;
import static rorqual.tests.client26.Text.untimed;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.NamespaceExistException;
import org.apache.hadoop.hbase.NamespaceNotFoundException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import rorqual.tests.client26.Cluster;
import rorqual.tests.client26.Remote;
import rorqual.tests.client26.Text;
import rorqual.tests.support.Expect;
import rorqual.tests.support.Program;
import rorqual.tests.support.Steps;

/** Operations on namespaces, and each error they can end in. */
public final class Namespaces implements Program {
    private static final String CONSTRAINT = "org.apache.hadoop.hbase.constraint.ConstraintException";

    private final Cluster cluster;
    private final Admin admin;
    private final String name;
    private final String absent;
    private final TableName table;

    public Namespaces(Cluster cluster) {
        this.cluster = cluster;
        this.admin = cluster.admin;
        this.name = "ns_" + cluster.run;
        this.absent = "nsabsent_" + cluster.run;
        this.table = TableName.valueOf(name, "t");
    }

    @Override
    public void write(Steps steps) throws Exception {
        steps.must("create with properties", () -> {
            admin.createNamespace(NamespaceDescriptor.create(name).addConfiguration("creator", "me")
                .addConfiguration("empty", "").build());
            Expect.equal(Map.of("creator", "me", "empty", ""), admin.getNamespaceDescriptor(name).getConfiguration(), "properties");
        });
        steps.run("create what exists", () -> Expect.fails(NamespaceExistException.class, name, () ->
            admin.createNamespace(NamespaceDescriptor.create(name).build())));
        steps.run("reserved names exist", () -> Expect.fails(NamespaceExistException.class, "hbase", () ->
            admin.createNamespace(NamespaceDescriptor.create(NamespaceDescriptor.SYSTEM_NAMESPACE_NAME_STR).build())));
        steps.run("illegal names", () -> {
            // The server's exception is retryable; the client must not retry here.
            Configuration once = Cluster.configuration(Cluster.zookeeper());
            once.setInt("hbase.client.retries.number", 1);
            try (Connection connection = ConnectionFactory.createConnection(once); Admin impatient = connection.getAdmin()) {
                for (String illegal : new String[] {"a-b", "a.b", "a b", "a:b"}) {
                    String causes = Failures.causes(() -> impatient.createNamespace(NamespaceDescriptor.create(illegal).build()));
                    Expect.that(causes.contains("Illegal character"), "'" + illegal + "' " + causes);
                }
            }
        });
        steps.run("change", () -> {
            admin.modifyNamespace(NamespaceDescriptor.create(name).addConfiguration("owner", "you").build());
            Expect.equal(Map.of("owner", "you"), admin.getNamespaceDescriptor(name).getConfiguration(), "properties");
        });
        steps.run("an unknown one", () -> {
            Expect.fails(NamespaceNotFoundException.class, absent, () -> admin.getNamespaceDescriptor(absent));
            Expect.fails(NamespaceNotFoundException.class, absent, () -> admin.deleteNamespace(absent));
            Expect.fails(NamespaceNotFoundException.class, absent, () ->
                admin.modifyNamespace(NamespaceDescriptor.create(absent).build()));
            Expect.fails(NamespaceNotFoundException.class, absent, () -> admin.listTableNamesByNamespace(absent));
        });
        steps.must("a table in it", () -> {
            admin.createTable(TableDescriptorBuilder.newBuilder(table).setColumnFamily(Cluster.family("cf")).build());
            try (Table t = cluster.connection.getTable(table)) {
                t.put(put("r", "cf:q=v"));
            }
            Expect.equal(List.of(table), List.of(admin.listTableNamesByNamespace(name)), "tables by namespace");
            Expect.equal(1, admin.listTableDescriptorsByNamespace(Bytes.toBytes(name)).size(), "descriptors by namespace");
        });
        steps.run("not empty, not dropped", () -> Remote.fails(CONSTRAINT,
            "Only empty namespaces can be removed. Namespace " + name + " has 1 tables", () -> admin.deleteNamespace(name)));
        steps.run("reserved ones are not dropped", () -> {
            Remote.fails(CONSTRAINT, "Reserved namespace default cannot be removed.", () -> admin.deleteNamespace("default"));
            Remote.fails(CONSTRAINT, "Reserved namespace hbase cannot be removed.", () -> admin.deleteNamespace("hbase"));
        });
        steps.run("drop an empty one", () -> {
            String empty = "nsempty_" + cluster.run;
            admin.createNamespace(NamespaceDescriptor.create(empty).build());
            Expect.that(names().contains(empty), "listed");
            admin.deleteNamespace(empty);
            Expect.that(!names().contains(empty), "still listed");
            Expect.fails(NamespaceNotFoundException.class, empty, () -> admin.getNamespaceDescriptor(empty));
        });
        check(steps);
    }

    @Override
    public void check(Steps steps) throws Exception {
        steps.run("list and describe", () -> {
            Expect.that(names().containsAll(List.of("default", "hbase", name)), "among " + names());
            Expect.that(List.of(admin.listNamespaces()).contains(name), "names alone");
            Expect.equal(Map.of("owner", "you"), admin.getNamespaceDescriptor(name).getConfiguration(), "properties");
        });
        steps.run("its table", () -> {
            try (Table t = cluster.connection.getTable(table)) {
                Expect.equal("r/cf:q=v", untimed(t, new Scan()), "cells");
            }
        });
        steps.run("hbase:namespace is a table like any other", () -> {
            try (Table t = cluster.connection.getTable(TableName.NAMESPACE_TABLE_NAME)) {
                List<String> rows = new ArrayList<>();
                for (Result result : Text.results(t, new Scan())) {
                    rows.add(Text.s(result.getRow()));
                    Expect.that(result.containsNonEmptyColumn(Bytes.toBytes("info"), Bytes.toBytes("d")), "info:d");
                }
                Expect.that(rows.containsAll(List.of("default", "hbase", name)), "rows " + rows);
            }
        });
    }

    private List<String> names() throws Exception {
        List<String> names = new ArrayList<>();
        for (NamespaceDescriptor descriptor : admin.listNamespaceDescriptors()) {
            names.add(descriptor.getName());
        }
        return names;
    }

    @Override
    public void drop(Steps steps) {
        steps.run("drop", () -> cluster.dropNamespace(name));
    }
}
