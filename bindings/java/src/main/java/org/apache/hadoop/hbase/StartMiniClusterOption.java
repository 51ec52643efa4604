// SPDX-License-Identifier: Apache-2.0
package org.apache.hadoop.hbase;

import java.util.List;

/** Options of a mini cluster. The numbers are stored but have no effect: one server is master and region server. */
public final class StartMiniClusterOption {
  private final Builder built;

  private StartMiniClusterOption(Builder built) {
    this.built = built;
  }

  public static Builder builder() {
    return new Builder();
  }

  public int getNumMasters() {
    return built.masters;
  }

  public int getNumAlwaysStandByMasters() {
    return built.standByMasters;
  }

  public int getNumRegionServers() {
    return built.regionServers;
  }

  public List<Integer> getRsPorts() {
    return built.ports;
  }

  public int getNumDataNodes() {
    return built.dataNodes;
  }

  public String[] getDataNodeHosts() {
    return built.hosts;
  }

  public int getNumZkServers() {
    return built.zooKeepers;
  }

  public boolean isCreateRootDir() {
    return built.rootDir;
  }

  public boolean isCreateWALDir() {
    return built.walDir;
  }

  /** Builds the options; each method sets the option of its name. */
  public static final class Builder {
    private int masters = 1;
    private int standByMasters;
    private int regionServers = 1;
    private List<Integer> ports;
    private int dataNodes = 1;
    private String[] hosts;
    private int zooKeepers = 1;
    private boolean rootDir;
    private boolean walDir;

    private Builder() {}

    public StartMiniClusterOption build() {
      return new StartMiniClusterOption(this);
    }

    public Builder numMasters(int number) {
      masters = number;
      return this;
    }

    public Builder numAlwaysStandByMasters(int number) {
      standByMasters = number;
      return this;
    }

    public Builder numRegionServers(int number) {
      regionServers = number;
      return this;
    }

    public Builder numWorkers(int number) {
      dataNodes = number;
      return numRegionServers(number);
    }

    public Builder rsPorts(List<Integer> given) {
      ports = given;
      return this;
    }

    public Builder numDataNodes(int number) {
      dataNodes = number;
      return this;
    }

    public Builder dataNodeHosts(String[] given) {
      hosts = given;
      return this;
    }

    public Builder numZkServers(int number) {
      zooKeepers = number;
      return this;
    }

    public Builder createRootDir(boolean create) {
      rootDir = create;
      return this;
    }

    public Builder createWALDir(boolean create) {
      walDir = create;
      return this;
    }
  }
}
