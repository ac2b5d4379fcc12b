/** The contract of the port of the replica: in memory, alone on real stores, and one of three. */
import { disks } from '../store/stores.ts'
import { loneFooting, memoryFooting, simulatedFooting } from './footings.ts'
import { replicaPortContract } from './replica-port.ts'

replicaPortContract('replicas in memory', memoryFooting, { canBeCutOff: true })

for (const [disk, makeDisk] of disks) {
  replicaPortContract(`a node alone, on ${disk}`, (limits) => loneFooting(makeDisk, limits), {
    canBeCutOff: false,
  })
}

replicaPortContract('a node of three, simulated', simulatedFooting, { canBeCutOff: true })
