/** The part of `metadata` that lab code reads or writes. */
export interface ObjectMeta {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
}

/** Who made the object; `controller: true` marks the one that manages it. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** What every object has. `kind` and `apiVersion` are absent on list items. */
export interface ApiObject {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly metadata: ObjectMeta;
}

/** One entry of `status.conditions` of any kind. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string | null;
  readonly lastUpdateTime?: string | null;
  readonly lastProbeTime?: string | null;
  readonly lastHeartbeatTime?: string | null;
}

/** A label selector as in Deployments; empty selects everything. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

/** One port of a Service. */
export interface ServicePortObject {
  readonly name?: string;
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP';
  readonly appProtocol?: string;
  readonly port: number;
  readonly targetPort?: number | string;
  readonly nodePort?: number;
}

/** One entry of `status.loadBalancer.ingress`; the server sets `ipMode` to `VIP` when it is absent. It takes any value. */
export interface LoadBalancerIngress {
  readonly ip?: string;
  readonly hostname?: string;
  readonly ipMode?: string;
}

/** v1 Service. */
export interface Service extends ApiObject {
  readonly spec?: {
    readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
    readonly clusterIP?: string;
    readonly clusterIPs?: readonly string[];
    readonly ports?: readonly ServicePortObject[];
    readonly selector?: Readonly<Record<string, string>>;
    readonly ipFamilies?: readonly ('IPv4' | 'IPv6')[];
    readonly ipFamilyPolicy?: 'SingleStack' | 'PreferDualStack' | 'RequireDualStack';
    readonly externalIPs?: readonly string[];
    readonly externalName?: string;
    readonly externalTrafficPolicy?: 'Cluster' | 'Local';
    readonly internalTrafficPolicy?: 'Cluster' | 'Local';
    readonly trafficDistribution?: string;
    readonly healthCheckNodePort?: number;
    readonly loadBalancerClass?: string;
    readonly loadBalancerIP?: string;
    readonly loadBalancerSourceRanges?: readonly string[];
    readonly allocateLoadBalancerNodePorts?: boolean;
    readonly publishNotReadyAddresses?: boolean;
    readonly sessionAffinity?: 'None' | 'ClientIP';
    readonly sessionAffinityConfig?: { readonly clientIP?: { readonly timeoutSeconds?: number } };
  };
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly LoadBalancerIngress[] | null };
    readonly conditions?: readonly Condition[];
  };
}

/** One endpoint of an EndpointSlice. */
export interface EndpointObject {
  readonly addresses: readonly string[];
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly zone?: string;
  readonly hints?: {
    readonly forZones?: readonly { readonly name: string }[];
    readonly forNodes?: readonly { readonly name: string }[];
  };
  readonly targetRef?: {
    readonly kind?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly uid?: string;
  };
}

/** discovery.k8s.io/v1 EndpointSlice. `endpoints` and `ports` may be null, which means empty. */
export interface EndpointSlice extends ApiObject {
  readonly addressType: 'IPv4' | 'IPv6' | 'FQDN';
  readonly endpoints?: readonly EndpointObject[] | null;
  readonly ports?:
    | readonly {
        readonly name?: string;
        readonly protocol?: 'TCP' | 'UDP' | 'SCTP';
        readonly port?: number;
        readonly appProtocol?: string;
      }[]
    | null;
}

/** v1 Node. */
export interface Node extends ApiObject {
  readonly spec?: {
    readonly podCIDR?: string;
    readonly podCIDRs?: readonly string[];
    readonly providerID?: string;
    readonly unschedulable?: boolean;
    readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  };
  readonly status?: {
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
    readonly conditions?: readonly Condition[];
    readonly capacity?: Readonly<Record<string, string>>;
    readonly allocatable?: Readonly<Record<string, string>>;
    readonly nodeInfo?: Readonly<Record<string, string>>;
  };
}

/** How the kubelet asks a container whether it is ready. */
export interface Probe {
  readonly httpGet?: { readonly path?: string; readonly port: number | string; readonly scheme?: string };
  readonly tcpSocket?: { readonly port: number | string };
  readonly exec?: { readonly command: readonly string[] };
  readonly initialDelaySeconds?: number;
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
}

/** One container of a pod. */
export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly ports?: readonly {
    readonly name?: string;
    readonly containerPort: number;
    readonly protocol?: 'TCP' | 'UDP' | 'SCTP';
  }[];
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly lifecycle?: {
    readonly preStop?: {
      readonly sleep?: { readonly seconds: number };
      readonly exec?: { readonly command: readonly string[] };
    };
  };
}

/** One required rule of pod anti-affinity. */
export interface PodAffinityTerm {
  readonly labelSelector?: LabelSelector;
  readonly topologyKey: string;
}

/** The part of a pod's spec that the lab understands; the server keeps the rest. */
export interface PodSpec {
  readonly nodeName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly containers: readonly Container[];
  readonly terminationGracePeriodSeconds?: number;
  readonly affinity?: {
    readonly podAntiAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[];
    };
  };
  readonly tolerations?: readonly {
    readonly key?: string;
    readonly operator?: string;
    readonly value?: string;
    readonly effect?: string;
  }[];
  readonly hostNetwork?: boolean;
  readonly readinessGates?: readonly { readonly conditionType: string }[];
}

/** v1 Pod. */
export interface Pod extends ApiObject {
  readonly spec?: PodSpec;
  readonly status?: {
    readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip: string }[];
    readonly hostIP?: string;
    readonly hostIPs?: readonly { readonly ip: string }[];
    readonly startTime?: string;
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly ready: boolean;
      readonly restartCount: number;
      readonly image?: string;
      readonly imageID?: string;
      readonly state?: Readonly<Record<string, unknown>>;
    }[];
  };
}

/** The template from which a Deployment or ReplicaSet makes pods. */
export interface PodTemplate {
  readonly metadata?: ObjectMeta;
  readonly spec: PodSpec;
}

/** apps/v1 Deployment. The server defaults replicas 1, RollingUpdate 25 %/25 %, history 10, deadline 600 s. */
export interface Deployment extends ApiObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly paused?: boolean;
    readonly minReadySeconds?: number;
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
    readonly strategy?: {
      readonly type?: 'RollingUpdate' | 'Recreate';
      readonly rollingUpdate?: { readonly maxSurge?: number | string; readonly maxUnavailable?: number | string };
    };
    readonly revisionHistoryLimit?: number;
    readonly progressDeadlineSeconds?: number;
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly unavailableReplicas?: number;
    readonly terminatingReplicas?: number;
    readonly conditions?: readonly Condition[];
  };
}

/** apps/v1 DaemonSet. The server defaults RollingUpdate with maxUnavailable 1 and maxSurge 0. */
export interface DaemonSet extends ApiObject {
  readonly spec?: {
    readonly minReadySeconds?: number;
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
    readonly updateStrategy?: {
      readonly type?: 'RollingUpdate' | 'OnDelete';
      readonly rollingUpdate?: { readonly maxSurge?: number | string; readonly maxUnavailable?: number | string };
    };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly currentNumberScheduled: number;
    readonly numberMisscheduled: number;
    readonly desiredNumberScheduled: number;
    readonly numberReady: number;
    readonly updatedNumberScheduled?: number;
    readonly numberAvailable?: number;
    readonly numberUnavailable?: number;
  };
}

/** apps/v1 ReplicaSet. */
export interface ReplicaSet extends ApiObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly minReadySeconds?: number;
    readonly selector: LabelSelector;
    readonly template?: PodTemplate;
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas: number;
    readonly fullyLabeledReplicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly terminatingReplicas?: number;
  };
}

/** v1 Namespace. */
export interface Namespace extends ApiObject {
  readonly spec?: { readonly finalizers?: readonly string[] };
  readonly status?: { readonly phase?: 'Active' | 'Terminating' };
}

/** networking.k8s.io/v1 ServiceCIDR. */
export interface ServiceCidr extends ApiObject {
  readonly spec?: { readonly cidrs?: readonly string[] };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

/** v1 Event. */
export interface EventObject extends ApiObject {
  readonly involvedObject: {
    readonly apiVersion?: string;
    readonly kind?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly uid?: string;
  };
  readonly reason?: string;
  readonly message?: string;
  readonly type?: 'Normal' | 'Warning';
  readonly count?: number;
  readonly firstTimestamp?: string | null;
  readonly lastTimestamp?: string | null;
  readonly source?: { readonly component?: string; readonly host?: string };
}
