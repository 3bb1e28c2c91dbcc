/**
 * Feature gates of kube-proxy that were removed between Kubernetes 1.26 and 1.36 after their feature had become permanent.
 * The agent always behaves as if they were on.
 */
export const permanentGates: ReadonlySet<string> = new Set([
  'EndpointSliceTerminatingCondition',
  'IPTablesOwnershipCleanup',
  'IPv6DualStack',
  'KubeProxyDrainingTerminatingNodes',
  'LoadBalancerIPMode',
  'MinimizeIPTablesRestore',
  'MixedProtocolLBService',
  'ProxyTerminatingEndpoints',
  'ServiceInternalTrafficPolicy',
  'ServiceTrafficDistribution',
  'TopologyAwareHints',
]);

/** Feature gates of other components that Kubernetes 1.26 to 1.35 had and 1.36 lacks, and those that 1.37 added. */
export const otherReleaseGates: readonly string[] = `
    APIListChunking APIPriorityAndFairness APISelfSubjectReview AdvancedAuditing AggregatedDiscoveryEndpoint AppArmor
    CPUManager CSIInlineVolume CSIMigration CSIMigrationAWS CSIMigrationAzureDisk CSIMigrationAzureFile CSIMigrationGCE
    CSIMigrationPortworx CSIMigrationRBD CSIMigrationvSphere CSINodeExpandSecret CSIStorageCapacity
    CloudDualStackNodeIPs ConsistentHTTPGetHandlers ControllerManagerLeaderMigration CronJobTimeZone
    CustomResourceValidationExpressions DaemonSetUpdateSurge DefaultHostNetworkHostPortsInPodTemplates
    DelegateFSGroupToCSIDriver DevicePluginCDIDevices DevicePlugins DisableAcceleratorUsageMetrics
    DisableCloudProviders DisableKubeletCloudCredentialProviders DownwardAPIHugePages DryRun EfficientWatchResumption
    ElasticIndexedJob EphemeralContainers ExpandCSIVolumes ExpandInUsePersistentVolumes ExpandPersistentVolumes
    ExpandedDNSConfig ExperimentalHostUserNamespaceDefaulting GRPCContainerProbe HPAContainerMetrics
    HonorPVReclaimPolicy IdentifyPodOS InTreePluginPortworxUnregister InTreePluginRBDUnregister
    InTreePluginvSphereUnregister JobMutableNodeSchedulingDirectives JobPodFailurePolicy JobReadyPods
    JobTrackingWithFinalizers KMSv2 KMSv2KDF KubeletCredentialProviders KubeletPodResources
    KubeletPodResourcesGetAllocatable LegacyServiceAccountTokenCleanUp LegacyServiceAccountTokenNoAutoGeneration
    LegacyServiceAccountTokenTracking LocalStorageCapacityIsolation MemoryManager MinDomainsInPodTopologySpread
    MultiCIDRRangeAllocator NetworkPolicyEndPort NetworkPolicyStatus NewVolumeManagerReconstruction
    NodeOutOfServiceVolumeDetach OpenAPIV3 PDBUnhealthyPodEvictionPolicy PersistentVolumeLastPhaseTransitionTime
    PodDisruptionConditions PodHasNetworkCondition PodHostIPs PodIndexLabel PodSecurity ProbeTerminationGracePeriod
    ReadWriteOncePod RemainingItemCount RemoveSelfLink RetroactiveDefaultStorageClass ServiceIPStaticSubrange
    ServiceNodePortStaticSubrange StatefulSetAutoDeletePVC StatefulSetStartOrdinal
    APIServerWebhookAuthenticationToken AtomicWriteVolumeUserFields CompositePodGroup
    ControllerManagerReleaseLeaderElectionLockOnExit DRADerivedAttributes DRADeviceCompatibilityGroups
    DRAOptionalNodeOperations DRAPartitionableDevicesType DefaultPodSysctls EmptyDirVolumeMode EtcdRangeStream
    ExcludeAdmissionWebhookVirtualResources GRPCContainerProbeTLS H2CContainerProbe HugepageAwareEviction
    InPlacePodVerticalScalingMemoryBackedVolumes InPlacePodVerticalScalingSchedulerPreemption NodeLifecycleConditions
    PodGroupPreemptionPolicy StatefulSetRecreateStrategy VolumeBindMountOptions WatchListCompression
  `
  .trim()
  .split(/\s+/);
