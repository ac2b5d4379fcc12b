/**
 * The names that applications import from `trilithon/triggers`. A name that is not here is not part of it.
 */

// Declaring.
export {
  defineTriggers,
  type Handler,
  type Service,
  type ServiceOptions,
  type Trigger,
  type TriggerCell,
  type TriggerContext,
  type TriggerOptions,
} from './definition.ts'

// Working.
export { runTriggers, triggerAdmin, type RunningTriggers } from './run.ts'
export type { WorkerOptions } from './worker.ts'
export type { TriggerEvent } from './event.ts'
export type { Claim } from './offset-store.ts'

// Looking, and changing how it goes on.
export type {
  MarkedOf,
  ReplayFrom,
  ServiceStatus,
  ShardStatus,
  TriggerAdmin,
  WorkerStatus,
} from './admin.ts'
export type { MarkedCell } from './offset-rows.ts'
export type { TriggerRow, TriggerState } from './service-rows.ts'

// Limits.
export { defaultTriggerLimits, type TriggerLimits } from './limits.ts'
