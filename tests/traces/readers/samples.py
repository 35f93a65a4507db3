"""A small file of each format, written from its specification."""

from __future__ import annotations

from typing import Final

__all__ = ["SAMPLES"]

SPARK_EVENTLOG: Final = """\
{"Event":"SparkListenerLogStart","Spark Version":"4.0.0"}
{"Event":"SparkListenerApplicationStart","App Name":"shop","App ID":"app-1","Timestamp":1000,"User":"u"}
{"Event":"SparkListenerExecutorAdded","Timestamp":1500,"Executor ID":"1","Executor Info":{"Host":"n1","Total Cores":1}}
{"Event":"SparkListenerJobStart","Job ID":0,"Submission Time":2000,"Stage Infos":[],"Stage IDs":[3]}
{"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":3,"Stage Attempt ID":0,"Stage Name":"count","Submission Time":2100}}
{"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":4,"Stage Attempt ID":0,"Stage Name":"skipped"}}
{"Event":"SparkListenerTaskStart","Stage ID":3,"Stage Attempt ID":0,"Task Info":{"Task ID":7,"Index":0,"Attempt":0,"Launch Time":2200,"Executor ID":"1","Host":"n1","Finish Time":0,"Failed":false}}
{"Event":"SparkListenerTaskStart","Stage ID":3,"Stage Attempt ID":0,"Task Info":{"Task ID":8,"Index":1,"Attempt":0,"Launch Time":2300,"Executor ID":"1","Host":"n1","Finish Time":0,"Failed":false}}
{"Event":"SparkListenerTaskEnd","Stage ID":3,"Stage Attempt ID":0,"Task End Reason":{"Reason":"Success"},"Task Info":{"Task ID":7,"Index":0,"Attempt":0,"Launch Time":2200,"Executor ID":"1","Host":"n1","Locality":"ANY","Finish Time":3000,"Failed":false},"Task Metrics":{"Executor Deserialize Time":100,"Executor Run Time":600,"Result Serialization Time":50}}
{"Event":"SparkListenerExecutorRemoved","Timestamp":3500,"Executor ID":"1","Removed Reason":"lost"}
{"Event":"SparkListenerStageCompleted","Stage Info":{"Stage ID":3,"Stage Attempt ID":0,"Stage Name":"count","Submission Time":2100,"Completion Time":3600,"Failure Reason":"lost"}}
{"Event":"SparkListenerJobEnd","Job ID":0,"Completion Time":3700,"Job Result":{"Result":"JobFailed"}}
{"Event":"SparkListenerApplicationEnd","Timestamp":4000}
"""  # noqa: E501 - lines as Spark writes them
"""As org.apache.spark.util.JsonProtocol of Spark 4.0 writes it, without fields that no event takes."""

SAMPLES: Final = {"spark-eventlog": SPARK_EVENTLOG}
