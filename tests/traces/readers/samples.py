"""A small file of each format, written from its specification."""

from __future__ import annotations

from typing import Final

__all__ = ["CLOUDWATCH_STATISTICS", "PROMETHEUS_EXPORT", "SAMPLES"]

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

HADOOP_JHIST: Final = """\
Avro-Json
{"type":"record","name":"Event","namespace":"org.apache.hadoop.mapreduce.jobhistory","fields":[]}

{"type":"JOB_SUBMITTED","event":{"org.apache.hadoop.mapreduce.jobhistory.JobSubmitted":{"jobid":"job_5_0001","jobName":"sort","userName":"u","submitTime":1000}}}
{"type":"JOB_INFO_CHANGED","event":{"org.apache.hadoop.mapreduce.jobhistory.JobInfoChange":{"jobid":"job_5_0001","submitTime":1000,"launchTime":1100}}}
{"type":"JOB_INITED","event":{"org.apache.hadoop.mapreduce.jobhistory.JobInited":{"jobid":"job_5_0001","launchTime":1100,"jobStatus":"INITED"}}}
{"type":"TASK_STARTED","event":{"org.apache.hadoop.mapreduce.jobhistory.TaskStarted":{"taskid":"task_5_0001_r_000000","taskType":"REDUCE","startTime":1200,"splitLocations":""}}}
{"type":"REDUCE_ATTEMPT_STARTED","event":{"org.apache.hadoop.mapreduce.jobhistory.TaskAttemptStarted":{"taskid":"task_5_0001_r_000000","taskType":"REDUCE","attemptId":"attempt_5_0001_r_000000_1","startTime":1300,"trackerName":"n1","httpPort":8042}}}
{"type":"REDUCE_ATTEMPT_FINISHED","event":{"org.apache.hadoop.mapreduce.jobhistory.ReduceAttemptFinished":{"taskid":"task_5_0001_r_000000","attemptId":"attempt_5_0001_r_000000_1","taskType":"REDUCE","taskStatus":"SUCCEEDED","shuffleFinishTime":1400,"sortFinishTime":1450,"finishTime":1500,"hostname":"n1","rackname":{"string":"/r"}}}}
{"type":"TASK_FINISHED","event":{"org.apache.hadoop.mapreduce.jobhistory.TaskFinished":{"taskid":"task_5_0001_r_000000","taskType":"REDUCE","finishTime":1600,"status":"SUCCEEDED"}}}
{"type":"JOB_FAILED","event":{"org.apache.hadoop.mapreduce.jobhistory.JobUnsuccessfulCompletion":{"jobid":"job_5_0001","finishTime":1700,"jobStatus":"FAILED"}}}
"""
"""By hadoop-mapreduce-client-core/src/main/avro/Events.avpr of Apache Hadoop."""

HADOOP_RUMEN: Final = """\
{"priority":"NORMAL","jobID":"job_5_0001","submitTime":1000,"launchTime":1100,"finishTime":1700,
 "outcome":"SUCCESS","jobName":"} {",
 "mapTasks":[{"taskID":"task_5_0001_m_000000","taskType":"MAP","startTime":1200,
 "finishTime":1600,"taskStatus":"SUCCESS","attempts":[{"attemptID":"attempt_5_0001_m_000000_0",
 "hostName":"/r\\\\.1/n1\\\\.x","startTime":1300,"finishTime":1500,"shuffleFinished":-1,"result":"SUCCESS","records":7}]}],
 "reduceTasks":[],"otherTasks":[]} {
 "priority":"NORMAL","jobID":"job_5_0002","submitTime":2000,"launchTime":0,"finishTime":-1,"mapTasks":null
}
"""
"""As org.apache.hadoop.tools.rumen.LoggedJob is written, one object a job."""

HADOOP_HISTORY: Final = """\
Meta VERSION="1" .
Job JOBID="job_5_0001" JOBNAME="so\\"rt\\." USER="u" SUBMIT_TIME="1000" .
Job JOBID="job_5_0001" LAUNCH_TIME="1100" JOB_STATUS="PREP" .
Task TASKID="task_5_0001_m_000000" TASK_TYPE="MAP" START_TIME="1200" SPLITS="" .
MapAttempt TASK_TYPE="MAP" TASKID="task_5_0001_m_000000" TASK_ATTEMPT_ID="attempt_5_0001_m_000000_0" START_TIME="1300" TRACKER_NAME="tracker_n1\\.x:localhost/127\\.0\\.0\\.1:54153" HTTP_PORT="50060" .
MapAttempt TASK_TYPE="MAP" TASKID="task_5_0001_m_000000" TASK_ATTEMPT_ID="attempt_5_0001_m_000000_0" TASK_STATUS="FAILED" FINISH_TIME="1500" HOSTNAME="/r/n1\\.x" ERROR="java\\.io\\.IOException:
\tat x\\.
" .
Job JOBID="job_5_0001" FINISH_TIME="1700" JOB_STATUS="FAILED" .
"""  # noqa: E501 - lines as Hadoop writes them
"""As org.apache.hadoop.mapred.JobHistory of Apache Hadoop 0.20 writes it."""

GANGLIA: Final = """\
<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>
<!DOCTYPE GANGLIA_XML [ <!ELEMENT GANGLIA_XML (GRID|CLUSTER|HOST)*>
<!ATTLIST METRIC SOURCE (gmond) 'gmond'> ]>
<GANGLIA_XML VERSION="3.7.1" SOURCE="gmetad">
<GRID NAME="g" AUTHORITY="http://x/" LOCALTIME="1000">
<CLUSTER NAME="c" LOCALTIME="1000" OWNER="" LATLONG="" URL="">
<HOST NAME="n1" IP="10.0.0.1" REPORTED="998" TN="2" TMAX="20" DMAX="0" LOCATION="" GMOND_STARTED="1">
<METRIC NAME="cpu_user" VAL="7.5" TYPE="float" UNITS="%" TN="10" TMAX="90" DMAX="0" SLOPE="both">
<EXTRA_DATA><EXTRA_ELEMENT NAME="GROUP" VAL="cpu"/></EXTRA_DATA>
</METRIC>
<METRIC NAME="os_name" VAL="Linux" TYPE="string" UNITS="" TN="100" TMAX="1200" DMAX="0" SLOPE="zero"/>
</HOST>
</CLUSTER>
<CLUSTER NAME="d" LOCALTIME="1000" OWNER="" LATLONG="" URL="">
<HOSTS UP="1" DOWN="0" SOURCE="gmetad"/>
<METRICS NAME="cpu_user" SUM="7.5" NUM="1" TYPE="float" UNITS="%" SLOPE="both" SOURCE="gmond"/>
</CLUSTER>
</GRID>
</GANGLIA_XML>
"""
"""By the document type that gmetad 3.7 sends with its answer."""

RRD: Final = """\
<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE rrd SYSTEM "https://oss.oetiker.ch/rrdtool/rrdtool.dtd">
<!-- Round Robin Database Dump -->
<rrd>
  <version>0003</version>
  <step>15</step> <!-- Seconds -->
  <lastupdate>1007</lastupdate> <!-- 1970-01-01 00:16:47 UTC -->
  <ds><name> sum </name><type> GAUGE </type><last_ds>4</last_ds><value>1.0</value></ds>
  <rra>
    <cf>AVERAGE</cf>
    <pdp_per_row>1</pdp_per_row> <!-- 15 seconds -->
    <params><xff>5.0e-01</xff></params>
    <cdp_prep><ds><value>NaN</value></ds></cdp_prep>
    <database>
      <!-- 1970-01-01 00:16:15 UTC / 975 --> <row><v>1.0000000000e+00</v></row>
      <!-- 1970-01-01 00:16:30 UTC / 990 --> <row><v>NaN</v></row>
      <!-- 1970-01-01 00:16:45 UTC / 1005 --> <row><v>2.5000000000e+00</v></row>
    </database>
  </rra>
  <rra>
    <cf>MAX</cf>
    <pdp_per_row>4</pdp_per_row> <!-- 60 seconds -->
    <database>
      <!-- 1970-01-01 00:16:00 UTC / 960 --> <row><v>3.0000000000e+00</v></row>
    </database>
  </rra>
</rrd>
"""
"""As rrd_dump.c of RRDtool 1.8 writes it, and https://oss.oetiker.ch/rrdtool/rrdtool.dtd."""

PROMETHEUS: Final = """\
{"status":"success","data":{"resultType":"matrix","result":[
 {"metric":{"__name__":"up","job":"node","type":"x"},"values":[[1435781430.781,"1"],[1435781445.781,"NaN"],[1435781475.781,"0"]]},
 {"metric":{"job":"api"},"values":[[1435781430.781,"2.5"]]}]}}
"""
"""https://prometheus.io/docs/prometheus/latest/querying/api/, Range queries."""

PROMETHEUS_EXPORT: Final = """\
{"metric":{"__name__":"up","job":"node"},"values":[1,0,null],"timestamps":[1549891472010,1549891487010,1549891517010]}
{"metric":{"__name__":"up","job":"api"},"values":[1],"timestamps":[1549891461511]}
"""
"""https://docs.victoriametrics.com/victoriametrics/, How to export data in JSON line format."""

OPENMETRICS: Final = """\
# HELP http_requests The number of requests.
# TYPE http_requests counter
http_requests_total{method="post",path="a \\"b\\"\\n"} 1027 1395066363
http_requests_total{method="post",path="a \\"b\\"\\n"} 1030 1395066378.5 # {trace_id="x"} 1.0
http_requests_total{method="get",path=""} 5 1395066363
# TYPE up gauge
up 1 1395066363
up 1 1395066423
up NaN 1395066393
# EOF
"""
"""https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md."""

CLOUDWATCH: Final = """\
{"MetricDataResults":[{"Id":"m1","Label":"CPUUtilization","StatusCode":"Complete",
 "Timestamps":["2014-02-14T14:40:00Z","2014-02-14T14:35:00+00:00","2014-02-14T14:30:00Z"],"Values":[0.5,1,2]}],
 "Messages":[]}
"""
"""https://docs.aws.amazon.com/cli/latest/reference/cloudwatch/get-metric-data.html."""

CLOUDWATCH_STATISTICS: Final = """\
{"Label":"CPUUtilization","Datapoints":[
 {"Timestamp":"2014-02-14T14:30:00Z","Average":40.5,"Maximum":99.0,"Unit":"Percent"},
 {"Timestamp":"2014-02-14T14:35:00Z","Average":41.5,"Maximum":98.0,"Unit":"Percent"}]}
"""
"""https://docs.aws.amazon.com/cli/latest/reference/cloudwatch/get-metric-statistics.html."""

OTLP: Final = """\
{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"scope":{"name":"l"},"spans":[
 {"traceId":"5b8e","spanId":"eee1","parentSpanId":"","name":"pay","kind":2,"startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712661000000000","attributes":[{"key":"http.status","value":{"intValue":"500"}}],"events":[{"timeUnixNano":"1544712660500000000","name":"retry"}]}]}]}]}
{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8e","spanId":"eee2","parentSpanId":"eee1","name":"db","kind":"SPAN_KIND_CLIENT","startTimeUnixNano":1544712660100000000,"endTimeUnixNano":"0"}]}]}]}
"""
"""https://github.com/open-telemetry/opentelemetry-proto, examples/trace.json and docs/specification.md."""

JAEGER: Final = """\
{"data":[{"traceID":"5b8e","spans":[
 {"traceID":"5b8e","spanID":"eee1","operationName":"pay","references":[],"startTime":1544712660000000,"duration":1000000,
  "tags":[{"key":"span.kind","type":"string","value":"server"},{"key":"http.status","type":"int64","value":500}],
  "logs":[{"timestamp":1544712660500000,"fields":[{"key":"event","type":"string","value":"retry"}]}],"processID":"p1"},
 {"traceID":"5b8e","spanID":"eee2","operationName":"db","references":[{"refType":"CHILD_OF","traceID":"5b8e","spanID":"eee1"}],
  "startTime":1544712660100000,"duration":10,"tags":[],"logs":[],"processID":"p2"}],
 "processes":{"p1":{"serviceName":"shop","tags":[{"key":"hostname","type":"string","value":"n1"}]},"p2":{"serviceName":"db"}}}],
 "total":0,"limit":0,"offset":0,"errors":null}
"""
"""https://github.com/jaegertracing/jaeger, model/json/model.go."""

ZIPKIN: Final = """\
[{"traceId":"5b8e","id":"eee1","kind":"SERVER","name":"pay","timestamp":1544712660000000,"duration":1000000,
  "localEndpoint":{"serviceName":"shop"},"annotations":[{"timestamp":1544712660500000,"value":"retry"}],"tags":{"http.status":"500"}},
 {"traceId":"5b8e","parentId":"eee1","id":"eee2","kind":"CLIENT","name":"db","timestamp":1544712660100000,"duration":10,
  "localEndpoint":{"serviceName":"shop"}},
 {"traceId":"5b8e","parentId":"eee1","id":"eee2","kind":"SERVER","timestamp":1544712660100002,"shared":true}]
"""
"""https://zipkin.io/zipkin-api/zipkin2-api.yaml."""

XES: Final = """\
<?xml version="1.0" encoding="UTF-8" ?>
<!-- This file has been generated with the OpenXES library. -->
<!-- It conforms to the XML serialization of the XES standard. -->
<log xes.version="1.0" xes.features="nested-attributes" openxes.version="1.0RC7" xmlns="http://www.xes-standard.org/">
  <extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
  <global scope="event"><date key="time:timestamp" value="1970-01-01T00:00:00.000+00:00"/></global>
  <string key="concept:name" value="log"/>
  <trace>
    <string key="concept:name" value="case 1"/>
    <float key="amount" value="7.5"/>
    <event>
      <string key="concept:name" value="Create Fine"/>
      <date key="time:timestamp" value="2006-07-24T00:00:00.000+02:00"/>
      <string key="lifecycle:transition" value="complete"/>
      <string key="org:resource" value="561"/>
      <int key="points" value="3"><string key="concept:name" value="nested"/></int>
      <boolean key="paid" value="false"/>
    </event>
    <event>
      <string key="concept:name" value="Payment"/>
      <date key="time:timestamp" value="2006-07-25T10:00:00.250Z"/>
    </event>
  </trace>
</log>
"""
"""IEEE 1849-2016, https://xes-standard.org/."""

OTLP_METRICS: Final = """{"resourceMetrics":[{"resource":{"attributes":[{"key":"host.name","value":
{"stringValue":"n1"}}]},"scopeMetrics":[{"metrics":[
{"name":"cpu","unit":"1","gauge":{"dataPoints":[{"timeUnixNano":"1544712660000000000","asDouble":0.5,
"attributes":[{"key":"core","value":{"intValue":"3"}}]}]}},
{"name":"requests","sum":{"aggregationTemporality":1,"isMonotonic":true,"dataPoints":[
{"startTimeUnixNano":"1544712600000000000","timeUnixNano":"1544712660000000000","asInt":"7"}]}},
{"name":"took","unit":"s","histogram":{"aggregationTemporality":2,"dataPoints":[{"startTimeUnixNano":"1544712000000000000",
"timeUnixNano":"1544712660000000000","count":"3","sum":"NaN","min":1,"max":2.5,"bucketCounts":["1","2"],
"explicitBounds":[2]}]}}]}]}]}
"""
"""opentelemetry-proto, metrics.proto, in JSON of Protocol Buffers."""

INFLUX: Final = r"""# DML
# CONTEXT-DATABASE: home
weather,location=us\ midwest,st=a\,b temperature=82.5,n=3i,ok=true,note="a, \"b\" = c d" 1465839829100400200
cpu,host=n1 usage=1e1 1465839830100

cpu,host=n2 usage=-2,ok=f 1465839830
"""
"""https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/."""

SAMPLES: Final = {
    "spark-eventlog": SPARK_EVENTLOG,
    "hadoop-jhist": HADOOP_JHIST,
    "hadoop-rumen": HADOOP_RUMEN,
    "hadoop-history": HADOOP_HISTORY,
    "ganglia": GANGLIA,
    "rrd": RRD,
    "prometheus": PROMETHEUS,
    "openmetrics": OPENMETRICS,
    "cloudwatch": CLOUDWATCH,
    "otlp": OTLP,
    "otlp-metrics": OTLP_METRICS,
    "influx": INFLUX,
    "jaeger": JAEGER,
    "zipkin": ZIPKIN,
    "xes": XES,
}
"""By the name of the format."""
