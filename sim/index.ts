/** `trilithon/sim`: the deterministic world. Only the names listed here exist for users. */

// Running seeds
export { runSeed, runSeedChecked, type RunHooks } from './run.ts'
export { runCampaign, outcomeOf, type CampaignOptions, type CampaignSummary } from './campaign.ts'
export { exitCodes, replayLine, type RunOutcome, type RunResult } from './result.ts'
export { describeSwarm, drawSwarm, type SwarmOptions } from './swarm.ts'
export { describeViolation, type Violation } from './checkers/referee.ts'

// The world, for programs of one's own on the ports
export { World, type Scheduled } from './world/world.ts'
export { SeededRandom, type PartsPerMillion } from './world/random.ts'
export { SimProcess } from './world/sim-process.ts'
export { createClock, type ClockSkew } from './world/clock.ts'
export { Network, type FrameCodec, type FrameObserver } from './world/network.ts'
export { Weather, type LinkConditions } from './world/weather.ts'
export {
  SimDisk,
  type DiskImage,
  type DiskOptions,
  type Fate,
  type WriteFault,
} from './world/disk.ts'
export { Coverage } from './coverage.ts'
