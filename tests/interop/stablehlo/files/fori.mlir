"builtin.module"() <{sym_name = "jit_fori"}> ({
  "func.func"() <{function_type = (tensor<4xf64>) -> (tensor<4xf64>, tensor<i64>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg2: tensor<4xf64>):
    %8 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %9 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %10 = "stablehlo.constant"() <{value = dense<10> : tensor<i64>}> : () -> tensor<i64>
    %11 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %12:3 = "stablehlo.while"(%11, %11, %arg2) ({
    ^bb0(%arg14: tensor<i64>, %arg15: tensor<i64>, %arg16: tensor<4xf64>):
      %23 = "stablehlo.compare"(%arg14, %10) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%23) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg11: tensor<i64>, %arg12: tensor<i64>, %arg13: tensor<4xf64>):
      %21:2 = "func.call"(%arg12, %arg13) <{callee = @closed_call}> : (tensor<i64>, tensor<4xf64>) -> (tensor<i64>, tensor<4xf64>)
      %22 = "stablehlo.add"(%arg11, %9) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%22, %21#0, %21#1) : (tensor<i64>, tensor<i64>, tensor<4xf64>) -> ()
    }) : (tensor<i64>, tensor<i64>, tensor<4xf64>) -> (tensor<i64>, tensor<i64>, tensor<4xf64>)
    %13 = "stablehlo.convert"(%arg2) : (tensor<4xf64>) -> tensor<4xi64>
    %14 = "stablehlo.reduce"(%13, %11) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg9: tensor<i64>, %arg10: tensor<i64>):
      %20 = "stablehlo.add"(%arg9, %arg10) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%20) : (tensor<i64>) -> ()
    }) : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
    %15 = "stablehlo.add"(%14, %8) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %16:3 = "stablehlo.while"(%11, %15, %11) ({
    ^bb0(%arg6: tensor<i64>, %arg7: tensor<i64>, %arg8: tensor<i64>):
      %19 = "stablehlo.compare"(%arg6, %arg7) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%19) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg3: tensor<i64>, %arg4: tensor<i64>, %arg5: tensor<i64>):
      %17 = "stablehlo.add"(%arg3, %9) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %18 = "stablehlo.add"(%arg5, %arg3) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%17, %arg4, %18) : (tensor<i64>, tensor<i64>, tensor<i64>) -> ()
    }) : (tensor<i64>, tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<i64>, tensor<i64>)
    "func.return"(%12#2, %16#2) : (tensor<4xf64>, tensor<i64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i64>, tensor<4xf64>) -> (tensor<i64>, tensor<4xf64>), sym_name = "closed_call", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<i64>, %arg1: tensor<4xf64>):
    %0 = "stablehlo.constant"() <{value = dense<9.000000e-01> : tensor<f64>}> : () -> tensor<f64>
    %1 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %2 = "stablehlo.add"(%arg0, %1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %3 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<4xf64>
    %4 = "stablehlo.multiply"(%arg1, %3) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %5 = "stablehlo.convert"(%arg0) : (tensor<i64>) -> tensor<f64>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<4xf64>
    %7 = "stablehlo.add"(%4, %6) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "func.return"(%2, %7) : (tensor<i64>, tensor<4xf64>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
