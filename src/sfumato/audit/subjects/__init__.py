"""What is audited: the closed list of mechanisms and questions. A new room appends its own file."""

from sfumato.audit.subjects import clusters, counters, devices, histograms, partitions, publishing, selections
from sfumato.audit.subjects.subject import Subject

__all__ = ["SUBJECTS", "Subject"]

ROOMS = (histograms, partitions, selections, clusters, counters, devices, publishing)
SUBJECTS: tuple[Subject, ...] = tuple(subject for room in ROOMS for subject in room.subjects())
"""Every subject, in the order in which they are shown."""
