-- SPDX-License-Identifier: Apache-2.0
-- The health of any kind of batch.reprise.dev, for Argo CD. It reads the conditions as kstatus does, and stays without the
-- standard libraries, which Argo CD does not load for scripts in argocd-cm.
local status = obj.status or {}
local conditions = status.conditions or {}

-- words returns what is said beside the health: of a condition, or of the phase.
local function words(condition)
  local said = condition or status
  if said.message ~= nil and said.message ~= "" then
    return said.message
  end
  return said.reason or status.phase or ""
end

local held = nil
for _, c in ipairs(conditions) do
  if c.type == "Stalled" and c.status == "True" then
    held = c
  end
end

if status.observedGeneration ~= nil and status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = words(held)}
end

for _, c in ipairs(conditions) do
  if c.type == "Reconciling" and c.status == "True" then
    return {status = "Progressing", message = words(held or c)}
  end
  if c.type == "Stalled" and c.status == "True" then
    return {status = "Degraded", message = words(c)}
  end
end

for _, c in ipairs(conditions) do
  if c.type == "Admitting" and c.status == "False" then
    return {status = "Healthy", message = words(c)}
  end
end
for _, c in ipairs(conditions) do
  if c.type == "Ready" then
    return {status = "Healthy", message = words(c)}
  end
end
return {status = "Healthy", message = words()}
