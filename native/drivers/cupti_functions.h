// The functions of CUPTI that we call, as lists: names, and parameters with the types of cupti.h.
#pragma once

// Each member is the function behind it. X(member, name, parameters), in three groups: those that every CUPTI since 11.8 has, …
#define WARPLENS_CUPTI_REQUIRED(X)                                                                      \
  X(get_version, cuptiGetVersion, (uint32_t *version))                                                  \
  X(get_timestamp, cuptiGetTimestamp, (uint64_t *time))                                                 \
  X(get_result_string, cuptiGetResultString, (CuptiResult result, const char **text))                   \
  X(get_callback_name, cuptiGetCallbackName, (CuptiDomain domain, uint32_t cbid, const char **name))    \
  X(subscribe, cuptiSubscribe, (CuptiSubscriber * subscriber, CuptiCallback callback, void *user))      \
  X(unsubscribe, cuptiUnsubscribe, (CuptiSubscriber subscriber))                                        \
  X(enable_callback, cuptiEnableCallback,                                                               \
    (uint32_t enable, CuptiSubscriber subscriber, CuptiDomain domain, uint32_t cbid))                   \
  X(set_thread_id_type, cuptiSetThreadIdType, (uint32_t type))                                          \
  X(activity_register_timestamp_callback, cuptiActivityRegisterTimestampCallback,                       \
    (CuptiTimestampCallback callback))                                                                  \
  X(activity_register_callbacks, cuptiActivityRegisterCallbacks,                                        \
    (CuptiBufferRequested requested, CuptiBufferCompleted completed))                                   \
  X(activity_set_attribute, cuptiActivitySetAttribute, (uint32_t attribute, size_t *size, void *value)) \
  X(activity_enable, cuptiActivityEnable, (CuptiKind kind))                                             \
  X(activity_disable, cuptiActivityDisable, (CuptiKind kind))                                           \
  X(activity_flush_all, cuptiActivityFlushAll, (uint32_t flags))                                        \
  X(activity_get_next_record, cuptiActivityGetNextRecord,                                               \
    (uint8_t *buffer, size_t size, CuptiActivity **record))                                             \
  X(activity_get_num_dropped_records, cuptiActivityGetNumDroppedRecords,                                \
    (CudaContext context, uint32_t stream, size_t *dropped))

// … those that may be missing …
#define WARPLENS_CUPTI_OPTIONAL(X)                                                               \
  X(activity_enable_and_dump, cuptiActivityEnableAndDump, (CuptiKind kind))                      \
  X(activity_configure_um, cuptiActivityConfigureUnifiedMemoryCounter,                           \
    (CuptiUmConfig * config, uint32_t count))                                                    \
  X(get_context_id, cuptiGetContextId, (CudaContext context, uint32_t *id))                      \
  X(get_stream_id_ex, cuptiGetStreamIdEx,                                                        \
    (CudaContext context, CudaStream stream, uint8_t per_thread, uint32_t *id))                  \
  X(activity_enable_runtime_api, cuptiActivityEnableRuntimeApi, (uint32_t cbid, uint8_t enable)) \
  X(activity_enable_driver_api, cuptiActivityEnableDriverApi, (uint32_t cbid, uint8_t enable))   \
  X(activity_enable_allocation_source, cuptiActivityEnableAllocationSource, (uint8_t enable))    \
  X(activity_enable_event_times, cuptiActivityEnableCudaEventDeviceTimestamps, (uint8_t enable)) \
  X(is_tracing_session_running, cuptiIsTracingSessionRunning, (uint8_t *running))                \
  X(get_graph_node_id, cuptiGetGraphNodeId, (CudaGraphNode node, uint64_t *id))

// … and those of several subscribers.
#define WARPLENS_CUPTI_SEVERAL(X)                                                                          \
  X(subscribe_v2, cuptiSubscribe_v2,                                                                       \
    (CuptiSubscriber * subscriber, CuptiCallback callback, void *user, CuptiSubscriberParams *parameters)) \
  X(get_timestamp_v2, cuptiGetTimestamp_v2, (CuptiSubscriber subscriber, uint64_t *time))                  \
  X(activity_enable_v2, cuptiActivityEnable_v2,                                                            \
    (CuptiSubscriber subscriber, CuptiKind kind, CuptiActivityConfig * config))                            \
  X(activity_disable_v2, cuptiActivityDisable_v2,                                                          \
    (CuptiSubscriber subscriber, CuptiKind kind, CuptiActivityConfig * config))                            \
  X(activity_enable_and_dump_v2, cuptiActivityEnableAndDump_v2,                                            \
    (CuptiSubscriber subscriber, CuptiKind kind, CuptiActivityConfig * config))                            \
  X(activity_register_callbacks_v2, cuptiActivityRegisterCallbacks_v2,                                     \
    (CuptiSubscriber subscriber, CuptiBufferRequestedV2 requested, CuptiBufferCompletedV2 completed))      \
  X(activity_get_next_record_v2, cuptiActivityGetNextRecord_v2,                                            \
    (CuptiSubscriber subscriber, uint8_t *buffer, size_t size, CuptiActivity **record))                    \
  X(activity_get_num_dropped_records_v2, cuptiActivityGetNumDroppedRecords_v2,                             \
    (CuptiSubscriber subscriber, CudaContext context, uint32_t stream, size_t *dropped))                   \
  X(activity_set_attribute_v2, cuptiActivitySetAttribute_v2,                                               \
    (CuptiSubscriber subscriber, uint32_t attribute, size_t *size, void *value))                           \
  X(activity_enable_runtime_api_v2, cuptiActivityEnableRuntimeApi_v2,                                      \
    (CuptiSubscriber subscriber, uint32_t cbid, uint8_t enable))                                           \
  X(activity_enable_driver_api_v2, cuptiActivityEnableDriverApi_v2,                                        \
    (CuptiSubscriber subscriber, uint32_t cbid, uint8_t enable))
